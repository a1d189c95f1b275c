#include <algorithm>

#include "sluice/fat/limits.hpp"
#include "sluice/fat/partition/partition_formats.hpp"

namespace sluice::fat {
namespace {

constexpr std::uint64_t sector_bytes = 512;
constexpr std::uint32_t first_logical = 5;

bool is_extended(std::uint8_t type) noexcept {
    return type == 0x05 or type == 0x0f or type == 0x85;
}

std::string name_of_type(std::uint8_t type) {
    switch (type) {
        case 0x01:
            return "FAT12";
        case 0x04:
        case 0x06:
            return "FAT16";
        case 0x0e:
            return "FAT16 (LBA)";
        case 0x0b:
            return "FAT32";
        case 0x0c:
            return "FAT32 (LBA)";
        case 0x07:
            return "NTFS or exFAT";
        case 0x82:
            return "Linux swap";
        case 0x83:
            return "Linux";
        case 0xef:
            return "EFI system";
        default:
            return "type " + std::to_string(type);
    }
}

// The first sector of the slot is relative to `base`.
std::optional<partition> partition_of(const device& image, const mbr_slot& slot, std::uint64_t base,
                                      std::uint32_t number) {
    auto found = partition_inside(image, {.offset = (base + slot.first_sector.value()) * sector_bytes,
                                          .length = slot.sectors.value() * sector_bytes});
    if (not found) return std::nullopt;
    found->number = number;
    found->mbr_type = slot.type.value();
    found->type = name_of_type(found->mbr_type);
    return found;
}

// Reads one record of the chain: a logical partition, relative to the record, and the next record,
// relative to the start of the extended partition. The chain may be cyclic: it ends at the limit.
result<void> read_logical(device& image, std::uint64_t extended_start, std::vector<partition>& found) {
    std::uint64_t record = extended_start;
    std::uint32_t number = first_logical;
    for (std::size_t links = 0; links != limits::partitions_max; ++links) {
        std::array<std::byte, sizeof(mbr_sector)> bytes{};
        if (image.size_bytes() / sector_bytes <= record) return {};
        if (const auto done = image.read_at(record * sector_bytes, std::span<std::byte>(bytes)); not done)
            return done;
        const auto sector = *bytes_view(bytes).take<mbr_sector>();
        if (not is_mbr(sector)) return {};
        std::uint64_t next = record;
        for (const mbr_slot& slot : sector.slots) {
            if (slot.type.value() == 0) continue;
            if (is_extended(slot.type.value())) {
                next = extended_start + slot.first_sector.value();
            } else if (auto logical = partition_of(image, slot, record, number);
                       logical and found.size() != limits::partitions_max) {
                found.push_back(*std::move(logical));
                ++number;
            }
        }
        if (next == record) return {};
        record = next;
    }
    return {};
}

}  // namespace

bool is_mbr(const mbr_sector& sector) noexcept {
    if (sector.signature.value() != 0xaa55) return false;
    return std::ranges::all_of(sector.slots,
                               [](const mbr_slot& slot) {
                                   return slot.status.value() == 0 or slot.status.value() == 0x80;
                               }) and
           std::ranges::any_of(sector.slots, [](const mbr_slot& slot) { return slot.type.value() != 0; });
}

result<std::vector<partition>> read_mbr(device& image, const mbr_sector& master) {
    std::vector<partition> found;
    for (std::uint32_t i = 0; i != master.slots.size(); ++i) {
        const mbr_slot& slot = master.slots[i];
        if (slot.type.value() == 0 or is_extended(slot.type.value())) continue;
        if (auto primary = partition_of(image, slot, 0, i + 1); primary) found.push_back(*std::move(primary));
    }
    for (const mbr_slot& slot : master.slots) {
        if (not is_extended(slot.type.value())) continue;
        if (const auto done = read_logical(image, slot.first_sector.value(), found); not done)
            return failure(done.error());
        break;  // the numbering has no room for a second extended partition
    }
    return found;
}

}  // namespace sluice::fat
