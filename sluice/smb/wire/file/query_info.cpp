#include "sluice/smb/wire/file/query_info.hpp"

#include "sluice/smb/wire/file/output_body.hpp"

namespace sluice::smb::wire {
namespace {

struct query_info_request {
    le16 structure_size;          //  0  always 41: 40 fixed bytes plus "at least one" of the input
    le8 type;                     //  2
    le8 information_class;        //  3
    le32 output_buffer_length;    //  4
    le16 input_offset;            //  8
    le16 reserved;                // 10
    le32 input_length;            // 12
    le32 additional_information;  // 16
    le32 flags;                   // 20
    file_id file;                 // 24
};
static_assert(sizeof(query_info_request) == 40 and wire_type<query_info_request>);
static_assert(offsetof(query_info_request, input_offset) == 8 and offsetof(query_info_request, file) == 24);

}  // namespace

decoded<query_info_args> decode_query_info(const message_view& message) noexcept {
    const auto body = take_body<query_info_request>(message, 41);
    if (!body) return std::unexpected(body.error());
    const auto input = variable_part<query_info_request>(
        message, {.offset = body->input_offset.value(), .length = body->input_length.value()});
    if (!input) return std::unexpected(input.error());
    return query_info_args{.type = info_type(body->type.value()),
                           .information_class = body->information_class.value(),
                           .output_bytes_max = body->output_buffer_length.value(),
                           .additional_information = body->additional_information.value(),
                           .flags = query_info_flags(body->flags.value()),
                           .file = body->file,
                           .input = *input};
}

void encode(byte_writer& writer, const query_info_args& args) noexcept {
    const std::size_t input_offset = writer.position() + sizeof(query_info_request);
    writer.put(query_info_request{.structure_size = le16(41),
                                  .type = le8(static_cast<std::uint8_t>(args.type)),
                                  .information_class = le8(args.information_class),
                                  .output_buffer_length = le32(args.output_bytes_max),
                                  .input_offset = args.input.empty() ? le16() : narrow<le16>(input_offset),
                                  .reserved = {},
                                  .input_length = narrow<le32>(args.input.size()),
                                  .additional_information = le32(args.additional_information),
                                  .flags = le32(bits_of(args.flags)),
                                  .file = args.file});
    put_at_least_one_byte(writer, args.input);
}

decoded<query_info_reply> decode_query_info_reply(const message_view& message) noexcept {
    const auto output = decode_output_body(message);
    if (!output) return std::unexpected(output.error());
    return query_info_reply{.output = *output};
}

void encode(byte_writer& writer, const query_info_reply& reply) noexcept {
    encode_output_body(writer, reply.output);
}

}  // namespace sluice::smb::wire
