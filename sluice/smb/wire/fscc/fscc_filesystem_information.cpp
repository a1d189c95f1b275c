#include "sluice/smb/wire/fscc/fscc_filesystem_information.hpp"

#include <cstddef>

#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct volume_wire {
    le64 created;           //  0
    le32 serial_number;     //  8
    le32 label_length;      // 12
    le8  supports_objects;  // 16
    le8  reserved;          // 17
};
static_assert(sizeof(volume_wire) == 18 and offsetof(volume_wire, supports_objects) == 16);

struct size_wire {
    le64 total;             //  0
    le64 available;         //  8
    le32 sectors_per_unit;  // 16
    le32 bytes_per_sector;  // 20
};
static_assert(sizeof(size_wire) == 24);

struct full_size_wire {
    le64 total;                //  0
    le64 available_to_caller;  //  8
    le64 available;            // 16
    le32 sectors_per_unit;     // 24
    le32 bytes_per_sector;     // 28
};
static_assert(sizeof(full_size_wire) == 32);

struct device_wire {
    le32 type;             // 0
    le32 characteristics;  // 4
};
static_assert(sizeof(device_wire) == 8);

struct attribute_wire {
    le32 attributes;      // 0
    le32 name_units_max;  // 4
    le32 name_length;     // 8
};
static_assert(sizeof(attribute_wire) == 12);

struct control_wire {
    le64 start_filtering;  //  0
    le64 threshold;        //  8
    le64 stop_filtering;   // 16
    le64 quota_threshold;  // 24
    le64 quota_limit;      // 32
    le32 flags;            // 40
    le32 padding;          // 44
};
static_assert(sizeof(control_wire) == 48 and offsetof(control_wire, flags) == 40);

struct object_id_wire {
    guid object_id;                      //  0
    std::array<std::byte, 48> extended;  // 16
};
static_assert(sizeof(object_id_wire) == 64);

struct sector_size_wire {
    le32 logical;                         //  0
    le32 physical_atomicity;              //  4
    le32 physical_performance;            //  8
    le32 effective_physical_atomicity;    // 12
    le32 flags;                           // 16
    le32 sector_alignment;                // 20
    le32 partition_alignment;             // 24
};
static_assert(sizeof(sector_size_wire) == 28 and offsetof(sector_size_wire, flags) == 16);
// clang-format on

constexpr auto truncated = std::unexpected(decode_error::truncated);

decoded<std::string> take_text(byte_reader& reader, le32 length) noexcept {
    const auto bytes = reader.take_bytes(length.value());
    if (!bytes) return std::unexpected(decode_error::range_outside_message);
    return utf8_of(*bytes);
}

decoded<void> put_text(byte_writer& writer, std::string_view text) noexcept {
    if (const auto put = put_utf16(writer, text); !put) return std::unexpected(put.error());
    return {};
}

}  // namespace

decoded<void> encode(byte_writer& writer, const fs_volume_information& information) noexcept {
    const auto length = utf16_bytes_of(information.label);
    if (!length) return std::unexpected(length.error());
    writer.put(volume_wire{.created = information.created.wire(),
                           .serial_number = le32(information.serial_number),
                           .label_length = le32(static_cast<std::uint32_t>(*length)),
                           .supports_objects = le8(information.supports_objects),
                           .reserved = {}});
    return put_text(writer, information.label);
}

decoded<fs_volume_information> decode_fs_volume_information(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto wire = reader.take<volume_wire>();
    if (!wire) return truncated;
    auto label = take_text(reader, wire->label_length);
    if (!label) return std::unexpected(label.error());
    return fs_volume_information{.created = filetime(wire->created),
                                 .serial_number = wire->serial_number.value(),
                                 .supports_objects = wire->supports_objects.value() != 0,
                                 .label = std::move(*label)};
}

void encode(byte_writer& writer, const fs_size_information& information) noexcept {
    writer.put(size_wire{.total = le64(information.total_units),
                         .available = le64(information.available_units),
                         .sectors_per_unit = le32(information.sectors_per_unit),
                         .bytes_per_sector = le32(information.bytes_per_sector)});
}

decoded<fs_size_information> decode_fs_size_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<size_wire>();
    if (!wire) return truncated;
    return fs_size_information{.total_units = wire->total.value(),
                               .available_units = wire->available.value(),
                               .sectors_per_unit = wire->sectors_per_unit.value(),
                               .bytes_per_sector = wire->bytes_per_sector.value()};
}

void encode(byte_writer& writer, const fs_full_size_information& information) noexcept {
    writer.put(full_size_wire{.total = le64(information.total_units),
                              .available_to_caller = le64(information.available_to_caller_units),
                              .available = le64(information.available_units),
                              .sectors_per_unit = le32(information.sectors_per_unit),
                              .bytes_per_sector = le32(information.bytes_per_sector)});
}

decoded<fs_full_size_information> decode_fs_full_size_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<full_size_wire>();
    if (!wire) return truncated;
    return fs_full_size_information{.total_units = wire->total.value(),
                                    .available_to_caller_units = wire->available_to_caller.value(),
                                    .available_units = wire->available.value(),
                                    .sectors_per_unit = wire->sectors_per_unit.value(),
                                    .bytes_per_sector = wire->bytes_per_sector.value()};
}

void encode(byte_writer& writer, const fs_device_information& information) noexcept {
    writer.put(
        device_wire{.type = le32(information.type), .characteristics = le32(information.characteristics)});
}

decoded<fs_device_information> decode_fs_device_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<device_wire>();
    if (!wire) return truncated;
    return fs_device_information{.type = wire->type.value(),
                                 .characteristics = wire->characteristics.value()};
}

decoded<void> encode(byte_writer& writer, const fs_attribute_information& information) noexcept {
    const auto length = utf16_bytes_of(information.filesystem_name);
    if (!length) return std::unexpected(length.error());
    writer.put(attribute_wire{.attributes = le32(bits_of(information.attributes)),
                              .name_units_max = le32(information.name_units_max),
                              .name_length = le32(static_cast<std::uint32_t>(*length))});
    return put_text(writer, information.filesystem_name);
}

decoded<fs_attribute_information> decode_fs_attribute_information(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto wire = reader.take<attribute_wire>();
    if (!wire) return truncated;
    auto name = take_text(reader, wire->name_length);
    if (!name) return std::unexpected(name.error());
    return fs_attribute_information{.attributes = filesystem_attributes(wire->attributes.value()),
                                    .name_units_max = wire->name_units_max.value(),
                                    .filesystem_name = std::move(*name)};
}

void encode(byte_writer& writer, const fs_control_information& information) noexcept {
    writer.put(control_wire{.start_filtering = le64(information.free_space_start_filtering),
                            .threshold = le64(information.free_space_threshold),
                            .stop_filtering = le64(information.free_space_stop_filtering),
                            .quota_threshold = le64(information.default_quota_threshold),
                            .quota_limit = le64(information.default_quota_limit),
                            .flags = le32(information.flags),
                            .padding = {}});
}

decoded<fs_control_information> decode_fs_control_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<control_wire>();
    if (!wire) return truncated;
    return fs_control_information{.free_space_start_filtering = wire->start_filtering.value(),
                                  .free_space_threshold = wire->threshold.value(),
                                  .free_space_stop_filtering = wire->stop_filtering.value(),
                                  .default_quota_threshold = wire->quota_threshold.value(),
                                  .default_quota_limit = wire->quota_limit.value(),
                                  .flags = wire->flags.value()};
}

void encode(byte_writer& writer, const fs_object_id_information& information) noexcept {
    writer.put(object_id_wire{.object_id = information.object_id, .extended = information.extended});
}

decoded<fs_object_id_information> decode_fs_object_id_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<object_id_wire>();
    if (!wire) return truncated;
    return fs_object_id_information{.object_id = wire->object_id, .extended = wire->extended};
}

void encode(byte_writer& writer, const fs_sector_size_information& information) noexcept {
    writer.put(sector_size_wire{
        .logical = le32(information.logical_bytes),
        .physical_atomicity = le32(information.physical_bytes_for_atomicity),
        .physical_performance = le32(information.physical_bytes_for_performance),
        .effective_physical_atomicity = le32(information.effective_physical_bytes_for_atomicity),
        .flags = le32(information.flags),
        .sector_alignment = le32(information.sector_alignment_bytes),
        .partition_alignment = le32(information.partition_alignment_bytes)});
}

decoded<fs_sector_size_information> decode_fs_sector_size_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<sector_size_wire>();
    if (!wire) return truncated;
    return fs_sector_size_information{
        .logical_bytes = wire->logical.value(),
        .physical_bytes_for_atomicity = wire->physical_atomicity.value(),
        .physical_bytes_for_performance = wire->physical_performance.value(),
        .effective_physical_bytes_for_atomicity = wire->effective_physical_atomicity.value(),
        .flags = wire->flags.value(),
        .sector_alignment_bytes = wire->sector_alignment.value(),
        .partition_alignment_bytes = wire->partition_alignment.value()};
}

}  // namespace sluice::smb::wire
