#include "sluice/fat/partition/partition.hpp"

#include <algorithm>
#include <cerrno>

#include "sluice/fat/check/boot_choice.hpp"
#include "sluice/fat/device/partition_device.hpp"
#include "sluice/fat/partition/partition_formats.hpp"

namespace sluice::fat {
namespace {

std::expected<geometry, boot_problem> geometry_at(device& image, byte_extent range) {
    auto part = partition_device::of(image, range);
    ENSURE(part.has_value());  // invariant 1
    return read_geometry(*part);
}

bool has_backup(device& image, byte_extent range) {
    auto part = partition_device::of(image, range);
    ENSURE(part.has_value());  // invariant 1
    std::array<std::byte, sizeof(boot_sector)> bytes{};
    (void)part->device::read_at(0, std::span<std::byte>(bytes));
    return find_backup(*part, *bytes_view(bytes).take<boot_sector>()).has_value();
}

// Returns the only partition that matches; null if none or several do.
template <class Matches>
const partition* only_one(const partition_table& table, const Matches& matches) {
    const partition* found = nullptr;
    for (const partition& each : table.partitions) {
        if (not matches(each.range)) continue;
        if (found != nullptr) return nullptr;
        found = &each;
    }
    return found;
}

std::string list_of(const partition_table& table) {
    std::string text;
    for (const partition& each : table.partitions) {
        if (not text.empty()) text += ", ";
        text += "@" + std::to_string(each.number) + " (" + each.type + ", " +
                std::to_string(each.range.length >> 10) + " KiB)";
    }
    return text.empty() ? "none" : text;
}

std::unexpected<no_volume> none(std::string message, error cause = {EINVAL, "find volume"}) {
    return std::unexpected(no_volume{.message = std::move(message), .cause = cause});
}

std::expected<byte_extent, no_volume> only_fat_of(device& image, const partition_table& table) {
    const partition* found = nullptr;
    for (const partition& each : table.partitions) {
        if (not geometry_at(image, each.range)) continue;
        if (found != nullptr)
            return none("the image has several FAT partitions; choose one as IMAGE@N of " + list_of(table));
        found = &each;
    }
    if (found == nullptr)
        found = only_one(table, [&](byte_extent range) { return has_backup(image, range); });
    if (found != nullptr) return found->range;
    const byte_extent whole{.offset = 0, .length = image.size_bytes()};
    if (has_backup(image, whole)) return whole;
    return none("none of the image's partitions is a FAT volume: " + list_of(table));
}

}  // namespace

result<partition_table> read_partitions(device& image) {
    std::array<std::byte, sizeof(mbr_sector)> bytes{};
    if (image.size_bytes() < bytes.size()) return partition_table{};
    if (const auto done = image.read_at(0, std::span<std::byte>(bytes)); not done)
        return failure(done.error());
    const auto sector = *bytes_view(bytes).take<mbr_sector>();
    if (not is_mbr(sector)) return partition_table{};

    const bool protects = std::ranges::any_of(
        sector.slots, [](const mbr_slot& each) { return each.type.value() == mbr_type_gpt; });
    if (protects) {
        auto table = read_gpt(image);
        if (not table or table->scheme == partition_scheme::gpt) return table;
    }
    auto partitions = read_mbr(image, sector);
    if (not partitions) return failure(partitions.error());
    return partition_table{.scheme = partition_scheme::mbr, .partitions = *std::move(partitions)};
}

std::expected<byte_extent, no_volume> find_volume(device& image, std::optional<std::uint32_t> number) {
    const byte_extent whole{.offset = 0, .length = image.size_bytes()};
    if (number == 0U) return whole;
    const auto bare = geometry_at(image, whole);
    if (bare and not number) return whole;
    if (not bare and bare.error().fault == boot_fault::unreadable)
        return none(bare.error().message(), bare.error().as_error());

    const auto table = read_partitions(image);
    if (not table)
        return none("the partition table cannot be read: " + table.error().reason(), table.error());
    if (table->scheme == partition_scheme::none and not number and has_backup(image, whole)) return whole;
    if (table->scheme == partition_scheme::none)
        return none(number ? "the image has no partition table, so there is no partition @" +
                                 std::to_string(*number)
                           : bare.error().message());
    if (not number) return only_fat_of(image, *table);
    const partition* const found = table->find(*number);
    if (found == nullptr)
        return none("the image has no partition @" + std::to_string(*number) + ", only: " + list_of(*table));
    return found->range;
}

}  // namespace sluice::fat
