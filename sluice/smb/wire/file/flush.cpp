#include "sluice/smb/wire/file/flush.hpp"

#include "sluice/smb/wire/message/empty_body.hpp"

namespace sluice::smb::wire {
namespace {

struct flush_request {
    le16 structure_size;  // 0  always 24
    le16 reserved1;       // 2
    le32 reserved2;       // 4
    file_id file;         // 8
};
static_assert(sizeof(flush_request) == 24 and wire_type<flush_request>);
static_assert(offsetof(flush_request, reserved1) == 2 and offsetof(flush_request, file) == 8);

}  // namespace

decoded<flush_args> decode_flush(const message_view& message) noexcept {
    const auto body = take_body<flush_request>(message, 24);
    if (!body) return std::unexpected(body.error());
    return flush_args{.reserved = body->reserved1.value(), .file = body->file};
}

void encode(byte_writer& writer, const flush_args& args) noexcept {
    writer.put(flush_request{
        .structure_size = le16(24), .reserved1 = le16(args.reserved), .reserved2 = {}, .file = args.file});
}

decoded<flush_reply> decode_flush_reply(const message_view& message) noexcept {
    return decode_empty_body<flush_reply>(message);
}

void encode(byte_writer& writer, const flush_reply&) noexcept {
    encode_empty_body(writer);
}

}  // namespace sluice::smb::wire
