#include "sluice/smb/wire/file/query_directory.hpp"

#include "sluice/smb/wire/file/output_body.hpp"

namespace sluice::smb::wire {
namespace {

struct query_directory_request {
    le16 structure_size;        //  0  always 33: 32 fixed bytes plus "at least one" of the pattern
    le8 information_class;      //  2
    le8 flags;                  //  3
    le32 file_index;            //  4
    file_id file;               //  8
    le16 name_offset;           // 24
    le16 name_length;           // 26
    le32 output_buffer_length;  // 28
};
static_assert(sizeof(query_directory_request) == 32 and wire_type<query_directory_request>);
static_assert(offsetof(query_directory_request, name_offset) == 24 and
              offsetof(query_directory_request, output_buffer_length) == 28);

}  // namespace

decoded<query_directory_args> decode_query_directory(const message_view& message) noexcept {
    const auto body = take_body<query_directory_request>(message, 33);
    if (!body) return std::unexpected(body.error());
    const auto pattern = text_part<query_directory_request>(
        message, {.offset = body->name_offset.value(), .length = body->name_length.value()});
    if (!pattern) return std::unexpected(pattern.error());
    return query_directory_args{.information_class = directory_class(body->information_class.value()),
                                .flags = query_directory_flags(body->flags.value()),
                                .file_index = body->file_index.value(),
                                .file = body->file,
                                .pattern = *pattern,
                                .output_bytes_max = body->output_buffer_length.value()};
}

void encode(byte_writer& writer, const query_directory_args& args) noexcept {
    writer.put(query_directory_request{
        .structure_size = le16(33),
        .information_class = le8(static_cast<std::uint8_t>(args.information_class)),
        .flags = le8(bits_of(args.flags)),
        .file_index = le32(args.file_index),
        .file = args.file,
        .name_offset = narrow<le16>(writer.position() + sizeof(query_directory_request)),
        .name_length = narrow<le16>(args.pattern.size()),
        .output_buffer_length = le32(args.output_bytes_max)});
    put_at_least_one_byte(writer, args.pattern);
}

decoded<query_directory_reply> decode_query_directory_reply(const message_view& message) noexcept {
    const auto output = decode_output_body(message);
    if (!output) return std::unexpected(output.error());
    return query_directory_reply{.entries = *output};
}

void encode(byte_writer& writer, const query_directory_reply& reply) noexcept {
    encode_output_body(writer, reply.entries);
}

}  // namespace sluice::smb::wire
