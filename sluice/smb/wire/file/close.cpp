#include "sluice/smb/wire/file/close.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

struct close_request {
    le16 structure_size;  // 0  always 24
    le16 flags;           // 2
    le32 reserved;        // 4
    file_id file;         // 8
};
static_assert(sizeof(close_request) == 24 and wire_type<close_request>);
static_assert(offsetof(close_request, flags) == 2 and offsetof(close_request, file) == 8);

struct close_response {
    le16 structure_size;        // 0  always 60
    le16 flags;                 // 2
    le32 reserved;              // 4
    raw_open_information info;  // 8
};
static_assert(sizeof(close_response) == 60 and wire_type<close_response>);
static_assert(offsetof(close_response, flags) == 2 and offsetof(close_response, info) == 8);

}  // namespace

decoded<close_args> decode_close(const message_view& message) noexcept {
    const auto body = take_body<close_request>(message, 24);
    if (!body) return std::unexpected(body.error());
    return close_args{.flags = close_flags(body->flags.value()), .file = body->file};
}

void encode(byte_writer& writer, const close_args& args) noexcept {
    writer.put(close_request{
        .structure_size = le16(24), .flags = le16(bits_of(args.flags)), .reserved = {}, .file = args.file});
}

decoded<close_reply> decode_close_reply(const message_view& message) noexcept {
    const auto body = take_body<close_response>(message, 60);
    if (!body) return std::unexpected(body.error());
    return close_reply{.flags = close_flags(body->flags.value()),
                       .information = decode_open_information(body->info)};
}

void encode(byte_writer& writer, const close_reply& reply) noexcept {
    writer.put(close_response{.structure_size = le16(60),
                              .flags = le16(bits_of(reply.flags)),
                              .reserved = {},
                              .info = encode_open_information(reply.information)});
}

}  // namespace sluice::smb::wire
