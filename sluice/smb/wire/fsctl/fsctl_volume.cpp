#include "sluice/smb/wire/fsctl/fsctl_volume.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct volume_data_wire {
    le64 serial_number;             //  0
    le64 sectors;                   //  8
    le64 total_clusters;            // 16
    le64 free_clusters;             // 24
    le64 reserved_clusters;         // 32
    le32 sector_bytes;              // 40
    le32 cluster_bytes;             // 44
    le32 record_bytes;              // 48  of the master file table, as what follows
    le32 record_clusters;           // 52
    le64 table_bytes;               // 56
    le64 table_start;               // 64
    le64 table_mirror;              // 72
    le64 table_zone_start;          // 80
    le64 table_zone_end;            // 88
};
static_assert(sizeof(volume_data_wire) == ntfs_volume_data_bytes and
              offsetof(volume_data_wire, sector_bytes) == 40);

struct usn_request_wire {
    le16 version_min;  // 0
    le16 version_max;  // 2
};
static_assert(sizeof(usn_request_wire) == 4);

struct usn_head_wire {
    le32 record_bytes;   // 0
    le16 version_major;  // 4
    le16 version_minor;  // 6
};
static_assert(sizeof(usn_head_wire) == 8);

// After the file numbers, which are of 8 or 16 bytes.
struct usn_tail_wire {
    le64 usn;          //  0
    le64 time;         //  8
    le32 reason;       // 16
    le32 source;       // 20
    le32 security_id;  // 24
    le32 attributes;   // 28
    le16 name_bytes;   // 32
    le16 name_offset;  // 34
};
static_assert(sizeof(usn_tail_wire) == 36 and offsetof(usn_tail_wire, name_bytes) == 32);
// clang-format on

constexpr std::size_t record_alignment = 8;
constexpr std::size_t name_bytes_max = 0xffff;
constexpr std::size_t short_number_bytes = 8;

using short_number = std::array<std::byte, short_number_bytes>;

// The length of a record before its name.
constexpr std::size_t usn_record_fixed_bytes(bool is_version_3) noexcept {
    return is_version_3 ? 76 : 60;
}
static_assert(usn_record_fixed_bytes(false) ==
              sizeof(usn_head_wire) + 2 * sizeof(short_number) + sizeof(usn_tail_wire));
static_assert(usn_record_fixed_bytes(true) ==
              sizeof(usn_head_wire) + 2 * sizeof(file_number_128) + sizeof(usn_tail_wire));

void put_number(byte_writer& writer, const file_number_128& number, bool is_whole) noexcept {
    const bytes_view bytes(number);
    writer.put_bytes(is_whole ? bytes : *bytes.first(short_number_bytes));
}

std::optional<file_number_128> take_number(byte_reader& reader, bool is_whole) noexcept {
    if (is_whole) return reader.take<file_number_128>();
    const auto low = reader.take<short_number>();
    if (!low) return std::nullopt;
    file_number_128 number{};
    std::ranges::copy(*low, number.begin());
    return number;
}

}  // namespace

void encode(byte_writer& writer, const ntfs_volume_data& data) noexcept {
    writer.put(volume_data_wire{.serial_number = le64(data.serial_number),
                                .sectors = le64(data.sectors),
                                .total_clusters = le64(data.total_clusters),
                                .free_clusters = le64(data.free_clusters),
                                .reserved_clusters = {},
                                .sector_bytes = le32(data.sector_bytes),
                                .cluster_bytes = le32(data.cluster_bytes),
                                .record_bytes = {},
                                .record_clusters = {},
                                .table_bytes = {},
                                .table_start = {},
                                .table_mirror = {},
                                .table_zone_start = {},
                                .table_zone_end = {}});
}

decoded<ntfs_volume_data> decode_ntfs_volume_data(bytes_view bytes) noexcept {
    const auto wire = bytes.take<volume_data_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    return ntfs_volume_data{.serial_number = wire->serial_number.value(),
                            .sectors = wire->sectors.value(),
                            .total_clusters = wire->total_clusters.value(),
                            .free_clusters = wire->free_clusters.value(),
                            .sector_bytes = wire->sector_bytes.value(),
                            .cluster_bytes = wire->cluster_bytes.value()};
}

void encode(byte_writer& writer, const read_usn_request& request) noexcept {
    writer.put(
        usn_request_wire{.version_min = le16(request.version_min), .version_max = le16(request.version_max)});
}

decoded<read_usn_request> decode_read_usn_request(bytes_view bytes) noexcept {
    if (bytes.empty()) return read_usn_request{};
    const auto wire = bytes.take<usn_request_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    const read_usn_request request{.version_min = wire->version_min.value(),
                                   .version_max = wire->version_max.value()};
    if (request.version_min > request.version_max) return std::unexpected(decode_error::bad_value);
    return request;
}

decoded<std::size_t> usn_record_bytes(const usn_record& record) noexcept {
    const auto name_bytes = utf16_bytes_of(record.name);
    if (!name_bytes) return std::unexpected(name_bytes.error());
    if (*name_bytes > name_bytes_max) return std::unexpected(decode_error::too_long);
    const std::size_t unpadded_bytes = usn_record_fixed_bytes(record.is_version_3) + *name_bytes;
    return unpadded_bytes + (-unpadded_bytes & (record_alignment - 1));
}

decoded<void> encode(byte_writer& writer, const usn_record& record) noexcept {
    const auto record_bytes = usn_record_bytes(record);
    if (!record_bytes) return std::unexpected(record_bytes.error());
    const std::size_t fixed_bytes = usn_record_fixed_bytes(record.is_version_3);
    const std::size_t name_bytes = *utf16_bytes_of(record.name);
    writer.put(usn_head_wire{.record_bytes = le32(static_cast<std::uint32_t>(*record_bytes)),
                             .version_major = le16(record.is_version_3 ? 3 : 2),
                             .version_minor = {}});
    put_number(writer, record.file, record.is_version_3);
    put_number(writer, record.directory, record.is_version_3);
    writer.put(usn_tail_wire{.usn = {},
                             .time = {},
                             .reason = {},
                             .source = {},
                             .security_id = {},
                             .attributes = le32(bits_of(record.attributes)),
                             .name_bytes = le16(static_cast<std::uint16_t>(name_bytes)),
                             .name_offset = le16(static_cast<std::uint16_t>(fixed_bytes))});
    if (const auto put = put_utf16(writer, record.name); !put) return std::unexpected(put.error());
    writer.put_zeros(*record_bytes - fixed_bytes - name_bytes);
    return {};
}

decoded<usn_record> decode_usn_record(bytes_view bytes) noexcept {
    const auto head = bytes.take<usn_head_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    const bool is_version_3 = head->version_major.value() == 3;
    if (!is_version_3 and head->version_major.value() != 2) return std::unexpected(decode_error::bad_value);
    const auto whole = bytes.first(head->record_bytes.value());
    if (!whole) return std::unexpected(decode_error::truncated);
    byte_reader reader(*whole);
    if (!reader.skip(sizeof(usn_head_wire))) return std::unexpected(decode_error::truncated);
    const auto file = take_number(reader, is_version_3);
    const auto directory = file ? take_number(reader, is_version_3) : std::nullopt;
    const auto tail = directory ? reader.take<usn_tail_wire>() : std::nullopt;
    if (!tail) return std::unexpected(decode_error::truncated);
    const auto name_utf16 =
        whole->slice({.offset = tail->name_offset.value(), .length = tail->name_bytes.value()});
    if (!name_utf16) return std::unexpected(decode_error::range_outside_message);
    auto name = utf8_of(*name_utf16);
    if (!name) return std::unexpected(name.error());
    return usn_record{.is_version_3 = is_version_3,
                      .file = *file,
                      .directory = *directory,
                      .attributes = file_attributes(tail->attributes.value()),
                      .name = std::move(*name)};
}

}  // namespace sluice::smb::wire
