#include "sluice/smb/wire/message/transform_header.hpp"

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::uint32_t encrypted_id = 0x424d53fd;   // FD 'S' 'M' 'B'
constexpr std::uint32_t compressed_id = 0x424d53fc;  // FC 'S' 'M' 'B'

struct raw_transform_header {
    le32 protocol_id;                 //  0
    message_signature signature;      //  4
    std::array<std::byte, 16> nonce;  // 20  start of the authenticated part
    le32 original_message_size;       // 36
    le16 reserved;                    // 40
    le16 flags;                       // 42
    le64 session_id;                  // 44
};
static_assert(sizeof(raw_transform_header) == transform_header_bytes and wire_type<raw_transform_header>);
static_assert(offsetof(raw_transform_header, signature) == transform_signature_offset);
static_assert(offsetof(raw_transform_header, nonce) == transform_associated_offset);
static_assert(transform_associated_offset + transform_associated_bytes == transform_header_bytes);

}  // namespace

decoded<transform_header> decode_transform_header(bytes_view frame) noexcept {
    const auto id = frame.take<le32>();
    if (id and id->value() == compressed_id) return std::unexpected(decode_error::unsupported);
    const auto raw = frame.take<raw_transform_header>();
    if (!raw) return std::unexpected(decode_error::truncated);
    if (raw->protocol_id.value() != encrypted_id) return std::unexpected(decode_error::bad_protocol_id);
    if (raw->flags.value() != 1) return std::unexpected(decode_error::bad_value);
    return transform_header{.signature = raw->signature,
                            .nonce = raw->nonce,
                            .message_bytes = raw->original_message_size.value(),
                            .flags = raw->flags.value(),
                            .session_id = raw->session_id.value()};
}

decoded<encrypted_message> decode_transform(bytes_view frame) noexcept {
    const auto header = decode_transform_header(frame);
    if (!header) return std::unexpected(header.error());
    const auto associated =
        frame.slice({.offset = transform_associated_offset, .length = transform_associated_bytes});
    const auto ciphertext = frame.slice({.offset = transform_header_bytes, .length = header->message_bytes});
    if (!ciphertext) return std::unexpected(decode_error::truncated);
    return encrypted_message{.header = *header, .associated = *associated, .ciphertext = *ciphertext};
}

void encode(byte_writer& writer, const transform_header& header) noexcept {
    writer.put(raw_transform_header{.protocol_id = le32(encrypted_id),
                                    .signature = header.signature,
                                    .nonce = header.nonce,
                                    .original_message_size = le32(header.message_bytes),
                                    .reserved = {},
                                    .flags = le16(header.flags),
                                    .session_id = le64(header.session_id)});
}

}  // namespace sluice::smb::wire
