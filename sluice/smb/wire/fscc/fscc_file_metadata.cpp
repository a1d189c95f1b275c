#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"

#include <array>
#include <cstddef>

namespace sluice::smb::wire {
namespace {

// clang-format off
struct basic_wire {
    le64 created;     //  0
    le64 accessed;    //  8
    le64 written;     // 16
    le64 changed;     // 24
    le32 attributes;  // 32
    le32 reserved;    // 36
};
static_assert(sizeof(basic_wire) == 40 and offsetof(basic_wire, attributes) == 32);

struct standard_wire {
    le64 allocation_size;  //  0
    le64 end_of_file;      //  8
    le32 links;            // 16
    le8  delete_pending;   // 20
    le8  directory;        // 21
    le16 reserved;         // 22
};
static_assert(sizeof(standard_wire) == 24 and offsetof(standard_wire, delete_pending) == 20);

struct network_open_wire {
    le64 created;          //  0
    le64 accessed;         //  8
    le64 written;          // 16
    le64 changed;          // 24
    le64 allocation_size;  // 32
    le64 end_of_file;      // 40
    le32 attributes;       // 48
    le32 reserved;         // 52
};
static_assert(sizeof(network_open_wire) == 56 and offsetof(network_open_wire, end_of_file) == 40);

struct attribute_tag_wire {
    le32 attributes;   // 0
    le32 reparse_tag;  // 4
};
static_assert(sizeof(attribute_tag_wire) == 8);

struct compression_wire {
    le64 compressed_size;             //  0
    le16 format;                      //  8
    le8  unit_shift;                  // 10
    le8  chunk_shift;                 // 11
    le8  cluster_shift;               // 12
    std::array<std::byte, 3> reserved;  // 13
};
static_assert(sizeof(compression_wire) == 16 and offsetof(compression_wire, unit_shift) == 10);
// clang-format on

constexpr auto truncated = std::unexpected(decode_error::truncated);

}  // namespace

void encode(byte_writer& writer, const basic_information& information) noexcept {
    writer.put(basic_wire{.created = information.created.wire(),
                          .accessed = information.accessed.wire(),
                          .written = information.written.wire(),
                          .changed = information.changed.wire(),
                          .attributes = le32(bits_of(information.attributes)),
                          .reserved = {}});
}

decoded<basic_information> decode_basic_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<basic_wire>();
    if (!wire) return truncated;
    return basic_information{.created = filetime(wire->created),
                             .accessed = filetime(wire->accessed),
                             .written = filetime(wire->written),
                             .changed = filetime(wire->changed),
                             .attributes = file_attributes(wire->attributes.value())};
}

void encode(byte_writer& writer, const standard_information& information) noexcept {
    writer.put(standard_wire{.allocation_size = le64(information.allocation_bytes),
                             .end_of_file = le64(information.end_of_file),
                             .links = le32(information.links),
                             .delete_pending = le8(information.delete_pending),
                             .directory = le8(information.directory),
                             .reserved = {}});
}

decoded<standard_information> decode_standard_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<standard_wire>();
    if (!wire) return truncated;
    return standard_information{.allocation_bytes = wire->allocation_size.value(),
                                .end_of_file = wire->end_of_file.value(),
                                .links = wire->links.value(),
                                .delete_pending = wire->delete_pending.value() != 0,
                                .directory = wire->directory.value() != 0};
}

void encode(byte_writer& writer, const network_open_information& information) noexcept {
    writer.put(network_open_wire{.created = information.created.wire(),
                                 .accessed = information.accessed.wire(),
                                 .written = information.written.wire(),
                                 .changed = information.changed.wire(),
                                 .allocation_size = le64(information.allocation_bytes),
                                 .end_of_file = le64(information.end_of_file),
                                 .attributes = le32(bits_of(information.attributes)),
                                 .reserved = {}});
}

decoded<network_open_information> decode_network_open_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<network_open_wire>();
    if (!wire) return truncated;
    return network_open_information{.created = filetime(wire->created),
                                    .accessed = filetime(wire->accessed),
                                    .written = filetime(wire->written),
                                    .changed = filetime(wire->changed),
                                    .allocation_bytes = wire->allocation_size.value(),
                                    .end_of_file = wire->end_of_file.value(),
                                    .attributes = file_attributes(wire->attributes.value())};
}

void encode(byte_writer& writer, const attribute_tag_information& information) noexcept {
    writer.put(attribute_tag_wire{.attributes = le32(bits_of(information.attributes)),
                                  .reparse_tag = le32(information.reparse_tag)});
}

decoded<attribute_tag_information> decode_attribute_tag_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<attribute_tag_wire>();
    if (!wire) return truncated;
    return attribute_tag_information{.attributes = file_attributes(wire->attributes.value()),
                                     .reparse_tag = wire->reparse_tag.value()};
}

void encode(byte_writer& writer, const compression_information& information) noexcept {
    writer.put(compression_wire{.compressed_size = le64(information.compressed_bytes),
                                .format = le16(static_cast<std::uint16_t>(information.format)),
                                .unit_shift = le8(information.unit_shift),
                                .chunk_shift = le8(information.chunk_shift),
                                .cluster_shift = le8(information.cluster_shift),
                                .reserved = {}});
}

decoded<compression_information> decode_compression_information(bytes_view bytes) noexcept {
    const auto wire = bytes.take<compression_wire>();
    if (!wire) return truncated;
    return compression_information{.compressed_bytes = wire->compressed_size.value(),
                                   .format = compression_format(wire->format.value()),
                                   .unit_shift = wire->unit_shift.value(),
                                   .chunk_shift = wire->chunk_shift.value(),
                                   .cluster_shift = wire->cluster_shift.value()};
}

}  // namespace sluice::smb::wire
