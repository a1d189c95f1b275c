#include "sluice/smb/wire/message/session_setup.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

struct session_setup_request {
    le16 structure_size;       //  0  always 25: 24 fixed bytes plus "at least one" of the blob
    le8 flags;                 //  2
    le8 security_mode;         //  3
    le32 capabilities;         //  4
    le32 channel;              //  8  reserved
    le16 blob_offset;          // 12
    le16 blob_length;          // 14
    le64 previous_session_id;  // 16
};
static_assert(sizeof(session_setup_request) == 24 and wire_type<session_setup_request>);
static_assert(offsetof(session_setup_request, blob_offset) == 12 and
              offsetof(session_setup_request, previous_session_id) == 16);

struct session_setup_response {
    le16 structure_size;  //  0  always 9
    le16 session_flags;   //  2
    le16 blob_offset;     //  4
    le16 blob_length;     //  6
};
static_assert(sizeof(session_setup_response) == 8 and wire_type<session_setup_response>);
static_assert(offsetof(session_setup_response, session_flags) == 2 and
              offsetof(session_setup_response, blob_offset) == 4);

}  // namespace

decoded<session_setup_args> decode_session_setup(const message_view& message) noexcept {
    const auto body = take_body<session_setup_request>(message, 25);
    if (!body) return std::unexpected(body.error());
    const auto blob = variable_part<session_setup_request>(
        message, {.offset = body->blob_offset.value(), .length = body->blob_length.value()});
    if (!blob) return std::unexpected(blob.error());
    return session_setup_args{.flags = session_setup_flags(body->flags.value()),
                              .security_mode = security_mode(body->security_mode.value()),
                              .capabilities = capabilities(body->capabilities.value()),
                              .previous_session_id = body->previous_session_id.value(),
                              .security_blob = *blob};
}

void encode(byte_writer& writer, const session_setup_args& args) noexcept {
    writer.put(
        session_setup_request{.structure_size = le16(25),
                              .flags = le8(bits_of(args.flags)),
                              .security_mode = narrow<le8>(bits_of(args.security_mode)),
                              .capabilities = le32(bits_of(args.capabilities)),
                              .channel = {},
                              .blob_offset = narrow<le16>(writer.position() + sizeof(session_setup_request)),
                              .blob_length = narrow<le16>(args.security_blob.size()),
                              .previous_session_id = le64(args.previous_session_id)});
    put_at_least_one_byte(writer, args.security_blob);
}

decoded<session_setup_reply> decode_session_setup_reply(const message_view& message) noexcept {
    const auto body = take_body<session_setup_response>(message, 9);
    if (!body) return std::unexpected(body.error());
    const auto blob = variable_part<session_setup_response>(
        message, {.offset = body->blob_offset.value(), .length = body->blob_length.value()});
    if (!blob) return std::unexpected(blob.error());
    return session_setup_reply{.flags = session_flags(body->session_flags.value()), .security_blob = *blob};
}

void encode(byte_writer& writer, const session_setup_reply& reply) noexcept {
    writer.put(session_setup_response{
        .structure_size = le16(9),
        .session_flags = le16(bits_of(reply.flags)),
        .blob_offset = narrow<le16>(writer.position() + sizeof(session_setup_response)),
        .blob_length = narrow<le16>(reply.security_blob.size())});
    writer.put_bytes(reply.security_blob);
}

}  // namespace sluice::smb::wire
