#include "sluice/smb/wire/fsctl/fsctl_attributes.hpp"

#include <cstddef>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct integrity_wire {
    le16 algorithm;      //  0
    le16 reserved;       //  2
    le32 flags;          //  4
    le32 chunk_bytes;    //  8
    le32 cluster_bytes;  // 12
};
static_assert(sizeof(integrity_wire) == 16);

struct object_id_wire {
    guid id;                    //  0
    std::array<guid, 3> birth;  // 16
};
static_assert(sizeof(object_id_wire) == 64);

struct mark_handle_wire {
    le32 copy_number;    //  0
    le32 unused;         //  4
    le64 volume_handle;  //  8  not used
    le32 handle_info;    // 16
    le32 reserved;       // 20
};
static_assert(sizeof(mark_handle_wire) == 24 and offsetof(mark_handle_wire, handle_info) == 16);

struct pipe_peek_wire {
    le32 state;                //  0
    le32 readable;             //  4
    le32 messages;             //  8
    le32 first_message_bytes;  // 12
};
static_assert(sizeof(pipe_peek_wire) == 16);
// clang-format on

constexpr auto truncated = std::unexpected(decode_error::truncated);

}  // namespace

void encode(byte_writer& writer, const compression_state& state) noexcept {
    writer.put(le16(static_cast<std::uint16_t>(state.format)));
}

decoded<compression_state> decode_compression_state(bytes_view bytes) noexcept {
    const auto format = bytes.take<le16>();
    if (!format) return truncated;
    constexpr auto largest = static_cast<std::uint16_t>(compression_format::lznt1);
    if (format->value() > largest) return std::unexpected(decode_error::bad_value);
    return compression_state{compression_format(format->value())};
}

void encode(byte_writer& writer, const integrity_state& state) noexcept {
    writer.put(integrity_wire{.algorithm = le16(state.checksum_algorithm),
                              .reserved = {},
                              .flags = le32(state.flags),
                              .chunk_bytes = le32(state.checksum_chunk_bytes),
                              .cluster_bytes = le32(state.cluster_bytes)});
}

decoded<integrity_state> decode_integrity_state(bytes_view bytes) noexcept {
    const auto wire = bytes.take<integrity_wire>();
    if (!wire) return truncated;
    return integrity_state{.checksum_algorithm = wire->algorithm.value(),
                           .flags = wire->flags.value(),
                           .checksum_chunk_bytes = wire->chunk_bytes.value(),
                           .cluster_bytes = wire->cluster_bytes.value()};
}

void encode(byte_writer& writer, const object_id& identifier) noexcept {
    writer.put(object_id_wire{.id = identifier.id, .birth = identifier.birth_volume_object_and_domain});
}

decoded<object_id> decode_object_id(bytes_view bytes) noexcept {
    const auto wire = bytes.take<object_id_wire>();
    if (!wire) return truncated;
    return object_id{.id = wire->id, .birth_volume_object_and_domain = wire->birth};
}

void encode(byte_writer& writer, const mark_handle_request& request) noexcept {
    writer.put(mark_handle_wire{.copy_number = le32(request.copy_number),
                                .unused = {},
                                .volume_handle = {},
                                .handle_info = le32(request.handle_info),
                                .reserved = {}});
}

decoded<mark_handle_request> decode_mark_handle_request(bytes_view bytes) noexcept {
    const auto wire = bytes.take<mark_handle_wire>();
    if (!wire) return truncated;
    return mark_handle_request{.copy_number = wire->copy_number.value(),
                               .handle_info = wire->handle_info.value()};
}

void encode(byte_writer& writer, const pipe_peek_state& state) noexcept {
    writer.put(pipe_peek_wire{.state = le32(state.state),
                              .readable = le32(state.readable_bytes),
                              .messages = le32(state.messages),
                              .first_message_bytes = le32(state.first_message_bytes)});
}

decoded<pipe_peek_state> decode_pipe_peek_state(bytes_view bytes) noexcept {
    const auto wire = bytes.take<pipe_peek_wire>();
    if (!wire) return truncated;
    return pipe_peek_state{.state = wire->state.value(),
                           .readable_bytes = wire->readable.value(),
                           .messages = wire->messages.value(),
                           .first_message_bytes = wire->first_message_bytes.value()};
}

}  // namespace sluice::smb::wire
