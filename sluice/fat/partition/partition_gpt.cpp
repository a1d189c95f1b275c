#include <algorithm>
#include <cstdio>

#include "sluice/fat/codec/crc32.hpp"
#include "sluice/fat/limits.hpp"
#include "sluice/fat/partition/partition_formats.hpp"

namespace sluice::fat {
namespace {

struct gpt_header {
    le64 signature;                  //  0  "EFI PART"
    le32 revision;                   //  8
    le32 header_bytes;               // 12
    le32 header_crc;                 // 16  computed with this field zero
    le32 reserved;                   // 20
    le64 own_sector;                 // 24
    le64 other_sector;               // 32
    le64 first_usable;               // 40
    le64 last_usable;                // 48
    std::array<std::byte, 16> disk;  // 56
    le64 array_sector;               // 72
    le32 entry_count;                // 80
    le32 entry_bytes;                // 84
    le32 array_crc;                  // 88
};
static_assert(sizeof(gpt_header) == 92 and offsetof(gpt_header, array_sector) == 72);

struct gpt_entry {
    std::array<std::byte, 16> type;  //  0  all zeros: free
    std::array<std::byte, 16> id;    // 16
    le64 first_sector;               // 32
    le64 last_sector;                // 40
    le64 attributes;                 // 48
    std::array<le16, 36> name;       // 56
};
static_assert(sizeof(gpt_entry) == 128);

constexpr std::uint64_t efi_part = 0x5452'4150'2049'4645;

// The fields of a header whose checksum and values are valid.
struct checked_header {
    std::uint64_t array_offset = 0;  // bytes
    std::uint64_t array_bytes = 0;
    std::uint32_t entry_bytes = 0;
    std::uint32_t array_crc = 0;
};

std::optional<checked_header> decode_header(bytes_view sector, std::uint64_t own_sector) {
    const auto header = sector.take<gpt_header>();
    if (not header or header->signature.value() != efi_part) return std::nullopt;
    const auto covered = sector.first(header->header_bytes.value());
    if (not covered or covered->size() < sizeof(gpt_header)) return std::nullopt;
    gpt_header unsigned_header = *header;
    unsigned_header.header_crc = le32(0);
    const std::uint32_t sum = crc32(*covered->from(sizeof(gpt_header)), crc32(bytes_of(unsigned_header)));
    if (sum != header->header_crc.value() or header->own_sector.value() != own_sector) return std::nullopt;

    const std::uint32_t entry_bytes = header->entry_bytes.value();
    const std::uint64_t array_bytes = std::uint64_t{entry_bytes} * header->entry_count.value();
    if (entry_bytes < sizeof(gpt_entry) or entry_bytes > limits::gpt_entry_bytes_max) return std::nullopt;
    if (array_bytes > limits::gpt_array_bytes_max) return std::nullopt;
    const auto array_offset = checked_mul(header->array_sector.value(), sector.size());
    if (not array_offset) return std::nullopt;
    return checked_header{.array_offset = *array_offset,
                          .array_bytes = array_bytes,
                          .entry_bytes = entry_bytes,
                          .array_crc = header->array_crc.value()};
}

std::string guid_text(const std::array<std::byte, 16>& bytes) {
    constexpr std::size_t order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    std::string text;
    for (const std::size_t i : order) {
        if (text.size() == 8 or text.size() == 13 or text.size() == 18 or text.size() == 23) text += '-';
        constexpr const char* digits = "0123456789ABCDEF";
        text += digits[std::to_integer<unsigned>(bytes[i]) >> 4];
        text += digits[std::to_integer<unsigned>(bytes[i]) & 0xf];
    }
    return text;
}

std::string name_of_type(const std::array<std::byte, 16>& type) {
    const std::string guid = guid_text(type);
    if (guid == "C12A7328-F81F-11D2-BA4B-00A0C93EC93B") return "EFI system";
    if (guid == "EBD0A0A2-B9E5-4433-87C0-68B6B72699C7") return "basic data";
    if (guid == "0FC63DAF-8483-4772-8E79-3D69D8477DE4") return "Linux";
    return guid;
}

std::optional<partition> partition_of(const device& image, const gpt_entry& entry, std::uint32_t number,
                                      std::uint64_t sector_bytes) {
    if (entry.type == std::array<std::byte, 16>{}) return std::nullopt;
    const std::uint64_t first = entry.first_sector.value();
    const std::uint64_t last = entry.last_sector.value();
    if (last < first or last == ~std::uint64_t{0}) return std::nullopt;
    const auto offset = checked_mul(first, sector_bytes);
    const auto length = checked_mul(last - first + 1, sector_bytes);
    if (not offset or not length) return std::nullopt;
    auto found = partition_inside(image, {.offset = *offset, .length = *length});
    if (not found) return std::nullopt;
    found->number = number;
    found->type = name_of_type(entry.type);
    for (const le16 unit : entry.name) {
        if (unit.value() == 0) break;
        found->name += static_cast<char16_t>(unit.value());
    }
    return found;
}

// Reads the table whose header is in a sector; the scheme is none if it is not intact.
result<partition_table> read_copy(device& image, std::uint64_t sector_number, std::uint64_t sector_bytes) {
    std::vector<std::byte> sector(sector_bytes);
    if (image.size_bytes() / sector_bytes <= sector_number) return partition_table{};
    if (const auto done = image.read_at(sector_number * sector_bytes, std::span(sector)); not done)
        return failure(done.error());
    const auto header = decode_header(sector, sector_number);
    if (not header) return partition_table{};
    if (header->array_offset > image.size_bytes() or
        header->array_bytes > image.size_bytes() - header->array_offset)
        return partition_table{};
    std::vector<std::byte> array(header->array_bytes);
    if (const auto done = image.read_at(header->array_offset, std::span(array)); not done)
        return failure(done.error());
    if (crc32(array) != header->array_crc) return partition_table{};

    partition_table table;
    table.scheme = partition_scheme::gpt;
    std::uint32_t number = 0;
    for (std::size_t at = 0; at != array.size(); at += header->entry_bytes) {
        const auto entry = bytes_view(array).take_at<gpt_entry>(at);
        auto found = partition_of(image, *entry, ++number, sector_bytes);
        if (found and table.partitions.size() != limits::partitions_max)
            table.partitions.push_back(*std::move(found));
    }
    return table;
}

}  // namespace

result<partition_table> read_gpt(device& image) {
    for (const std::uint64_t sector_bytes : {512U, 4096U}) {
        auto table = read_copy(image, 1, sector_bytes);
        if (not table or table->scheme == partition_scheme::gpt) return table;
    }
    for (const std::uint64_t sector_bytes : {512U, 4096U}) {
        const std::uint64_t sectors = image.size_bytes() / sector_bytes;
        if (sectors < 3) continue;
        auto table = read_copy(image, sectors - 1, sector_bytes);
        if (not table) return table;
        table->is_backup = true;
        if (table->scheme == partition_scheme::gpt) return table;
    }
    return partition_table{};
}

}  // namespace sluice::fat
