#include "sluice/smb/wire/file/change_notify.hpp"

#include "sluice/smb/wire/file/output_body.hpp"

namespace sluice::smb::wire {
namespace {

struct change_notify_request {
    le16 structure_size;        //  0  always 32
    le16 flags;                 //  2
    le32 output_buffer_length;  //  4
    file_id file;               //  8
    le32 completion_filter;     // 24
    le32 reserved;              // 28
};
static_assert(sizeof(change_notify_request) == 32 and wire_type<change_notify_request>);
static_assert(offsetof(change_notify_request, file) == 8 and
              offsetof(change_notify_request, completion_filter) == 24);

}  // namespace

decoded<change_notify_args> decode_change_notify(const message_view& message) noexcept {
    const auto body = take_body<change_notify_request>(message, 32);
    if (!body) return std::unexpected(body.error());
    return change_notify_args{.flags = change_notify_flags(body->flags.value()),
                              .output_bytes_max = body->output_buffer_length.value(),
                              .file = body->file,
                              .filter = completion_filter(body->completion_filter.value())};
}

void encode(byte_writer& writer, const change_notify_args& args) noexcept {
    writer.put(change_notify_request{.structure_size = le16(32),
                                     .flags = le16(bits_of(args.flags)),
                                     .output_buffer_length = le32(args.output_bytes_max),
                                     .file = args.file,
                                     .completion_filter = le32(bits_of(args.filter)),
                                     .reserved = {}});
}

decoded<change_notify_reply> decode_change_notify_reply(const message_view& message) noexcept {
    const auto output = decode_output_body(message);
    if (!output) return std::unexpected(output.error());
    return change_notify_reply{.changes = *output};
}

void encode(byte_writer& writer, const change_notify_reply& reply) noexcept {
    encode_output_body(writer, reply.changes);
}

}  // namespace sluice::smb::wire
