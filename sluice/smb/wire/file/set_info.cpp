#include "sluice/smb/wire/file/set_info.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

struct set_info_request {
    le16 structure_size;          //  0  always 33: 32 fixed bytes plus "at least one" of the input
    le8 type;                     //  2
    le8 information_class;        //  3
    le32 input_length;            //  4
    le16 input_offset;            //  8
    le16 reserved;                // 10
    le32 additional_information;  // 12
    file_id file;                 // 16
};
static_assert(sizeof(set_info_request) == 32 and wire_type<set_info_request>);
static_assert(offsetof(set_info_request, input_offset) == 8 and offsetof(set_info_request, file) == 16);

struct set_info_response {
    le16 structure_size;  // 0  always 2
};
static_assert(sizeof(set_info_response) == 2 and wire_type<set_info_response>);

}  // namespace

decoded<set_info_args> decode_set_info(const message_view& message) noexcept {
    const auto body = take_body<set_info_request>(message, 33);
    if (!body) return std::unexpected(body.error());
    const auto input = variable_part<set_info_request>(
        message, {.offset = body->input_offset.value(), .length = body->input_length.value()});
    if (!input) return std::unexpected(input.error());
    return set_info_args{.type = info_type(body->type.value()),
                         .information_class = body->information_class.value(),
                         .additional_information = body->additional_information.value(),
                         .file = body->file,
                         .input = *input};
}

void encode(byte_writer& writer, const set_info_args& args) noexcept {
    writer.put(set_info_request{.structure_size = le16(33),
                                .type = le8(static_cast<std::uint8_t>(args.type)),
                                .information_class = le8(args.information_class),
                                .input_length = narrow<le32>(args.input.size()),
                                .input_offset = narrow<le16>(writer.position() + sizeof(set_info_request)),
                                .reserved = {},
                                .additional_information = le32(args.additional_information),
                                .file = args.file});
    put_at_least_one_byte(writer, args.input);
}

decoded<set_info_reply> decode_set_info_reply(const message_view& message) noexcept {
    const auto body = take_body<set_info_response>(message, 2);
    if (!body) return std::unexpected(body.error());
    return set_info_reply{};
}

void encode(byte_writer& writer, const set_info_reply&) noexcept {
    writer.put(set_info_response{.structure_size = le16(2)});
}

}  // namespace sluice::smb::wire
