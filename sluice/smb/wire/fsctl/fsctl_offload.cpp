#include "sluice/smb/wire/fsctl/fsctl_offload.hpp"

#include <cstddef>
#include <limits>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

// clang-format off
struct token_wire {
    be32 type;                       // 0  of SCSI, and so in its byte order
    be16 reserved;                   // 4
    be16 id_length;                  // 6
    std::array<std::byte, 504> id;   // 8
};
static_assert(sizeof(token_wire) == offload_token::encoded_bytes and wire_type<token_wire>);

struct read_request_wire {
    le32 size;         //  0
    le32 flags;        //  4
    le32 lifetime_ms;  //  8
    le32 reserved;     // 12
    le64 offset;       // 16
    le64 length;       // 24
};
static_assert(sizeof(read_request_wire) == 32 and wire_type<read_request_wire>);

struct read_reply_wire {
    le32 size;         //  0
    le32 flags;        //  4
    le64 length;       //  8
    token_wire token;  // 16
};
static_assert(sizeof(read_reply_wire) == offload_read_reply::encoded_bytes and wire_type<read_reply_wire>);

struct write_request_wire {
    le32 size;          //  0
    le32 flags;         //  4
    le64 offset;        //  8
    le64 length;        // 16
    le64 token_offset;  // 24
    token_wire token;   // 32
};
static_assert(sizeof(write_request_wire) == 544 and wire_type<write_request_wire>);

struct write_reply_wire {
    le32 size;    // 0
    le32 flags;   // 4
    le64 length;  // 8
};
static_assert(sizeof(write_reply_wire) == offload_write_reply::encoded_bytes and wire_type<write_reply_wire>);
// clang-format on

[[nodiscard]] token_wire wire_of(const offload_token& token) noexcept {
    return {.type = be32(token.type), .reserved = {}, .id_length = be16(sizeof token.id), .id = token.id};
}

[[nodiscard]] offload_token token_of(const token_wire& wire) noexcept {
    return {.type = wire.type.value(), .id = wire.id};
}

// Takes one that begins with its own length.
template <wire_type Wire>
[[nodiscard]] decoded<Wire> take_sized(bytes_view bytes) noexcept {
    const auto wire = bytes.take<Wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    if (wire->size.value() != sizeof(Wire)) return std::unexpected(decode_error::bad_structure_size);
    return *wire;
}

[[nodiscard]] bool fits(le64 offset, le64 length) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    return offset.value() <= most and length.value() <= most - offset.value();
}

}  // namespace

void encode(byte_writer& writer, const offload_read_request& request) noexcept {
    writer.put(read_request_wire{.size = le32(sizeof(read_request_wire)),
                                 .flags = {},
                                 .lifetime_ms = le32(request.lifetime_ms),
                                 .reserved = {},
                                 .offset = le64(request.offset),
                                 .length = le64(request.length)});
}

decoded<offload_read_request> decode_offload_read_request(bytes_view bytes) noexcept {
    const auto wire = take_sized<read_request_wire>(bytes);
    if (!wire) return std::unexpected(wire.error());
    if (not fits(wire->offset, wire->length)) return std::unexpected(decode_error::bad_value);
    return offload_read_request{.lifetime_ms = wire->lifetime_ms.value(),
                                .offset = wire->offset.value(),
                                .length = wire->length.value()};
}

void encode(byte_writer& writer, const offload_read_reply& reply) noexcept {
    writer.put(read_reply_wire{.size = le32(sizeof(read_reply_wire)),
                               .flags = le32(reply.flags),
                               .length = le64(reply.length),
                               .token = wire_of(reply.token)});
}

decoded<offload_read_reply> decode_offload_read_reply(bytes_view bytes) noexcept {
    const auto wire = take_sized<read_reply_wire>(bytes);
    if (!wire) return std::unexpected(wire.error());
    if (wire->token.id_length.value() != sizeof wire->token.id)
        return std::unexpected(decode_error::bad_value);
    return offload_read_reply{
        .flags = wire->flags.value(), .length = wire->length.value(), .token = token_of(wire->token)};
}

void encode(byte_writer& writer, const offload_write_request& request) noexcept {
    writer.put(write_request_wire{.size = le32(sizeof(write_request_wire)),
                                  .flags = {},
                                  .offset = le64(request.offset),
                                  .length = le64(request.length),
                                  .token_offset = le64(request.token_offset),
                                  .token = wire_of(request.token)});
}

decoded<offload_write_request> decode_offload_write_request(bytes_view bytes) noexcept {
    const auto wire = take_sized<write_request_wire>(bytes);
    if (!wire) return std::unexpected(wire.error());
    if (not fits(wire->offset, wire->length) or not fits(wire->token_offset, wire->length))
        return std::unexpected(decode_error::bad_value);
    return offload_write_request{.offset = wire->offset.value(),
                                 .length = wire->length.value(),
                                 .token_offset = wire->token_offset.value(),
                                 .token = token_of(wire->token)};
}

void encode(byte_writer& writer, const offload_write_reply& reply) noexcept {
    writer.put(
        write_reply_wire{.size = le32(sizeof(write_reply_wire)), .flags = {}, .length = le64(reply.length)});
}

decoded<offload_write_reply> decode_offload_write_reply(bytes_view bytes) noexcept {
    const auto wire = take_sized<write_reply_wire>(bytes);
    if (!wire) return std::unexpected(wire.error());
    return offload_write_reply{.length = wire->length.value()};
}

}  // namespace sluice::smb::wire
