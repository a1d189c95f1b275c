#include "sluice/smb/wire/file/ioctl.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

struct ioctl_request {
    le16 structure_size;       //  0  always 57: 56 fixed bytes plus "at least one" variable byte
    le16 reserved;             //  2
    le32 code;                 //  4
    file_id file;              //  8
    le32 input_offset;         // 24
    le32 input_count;          // 28
    le32 max_input_response;   // 32
    le32 output_offset;        // 36  no control sends output: ignored, like the count
    le32 output_count;         // 40
    le32 max_output_response;  // 44
    le32 flags;                // 48
    le32 reserved2;            // 52
};
static_assert(sizeof(ioctl_request) == 56 and wire_type<ioctl_request>);
static_assert(offsetof(ioctl_request, input_offset) == 24 and
              offsetof(ioctl_request, max_output_response) == 44);

struct ioctl_response {
    le16 structure_size;  //  0  always 49
    le16 reserved;        //  2
    le32 code;            //  4
    file_id file;         //  8
    le32 input_offset;    // 24
    le32 input_count;     // 28
    le32 output_offset;   // 32
    le32 output_count;    // 36
    le32 flags;           // 40
    le32 reserved2;       // 44
};
static_assert(sizeof(ioctl_response) == 48 and wire_type<ioctl_response>);
static_assert(offsetof(ioctl_response, input_offset) == 24 and offsetof(ioctl_response, output_offset) == 32);

/// Rounds up to a multiple of eight, where the output after the input begins.
constexpr std::size_t aligned(std::size_t position) noexcept {
    return (position + 7) & ~std::size_t{7};
}

}  // namespace

decoded<ioctl_args> decode_ioctl(const message_view& message) noexcept {
    const auto body = take_body<ioctl_request>(message, 57);
    if (!body) return std::unexpected(body.error());
    const auto input = variable_part<ioctl_request>(
        message, {.offset = body->input_offset.value(), .length = body->input_count.value()});
    if (!input) return std::unexpected(input.error());
    return ioctl_args{.code = control_code(body->code.value()),
                      .file = body->file,
                      .flags = ioctl_flags(body->flags.value()),
                      .input_bytes_max = body->max_input_response.value(),
                      .output_bytes_max = body->max_output_response.value(),
                      .input = *input};
}

void encode(byte_writer& writer, const ioctl_args& args) noexcept {
    const std::size_t input_offset = writer.position() + sizeof(ioctl_request);
    writer.put(ioctl_request{.structure_size = le16(57),
                             .reserved = {},
                             .code = le32(static_cast<std::uint32_t>(args.code)),
                             .file = args.file,
                             .input_offset = narrow<le32>(input_offset),
                             .input_count = narrow<le32>(args.input.size()),
                             .max_input_response = le32(args.input_bytes_max),
                             .output_offset = narrow<le32>(input_offset),
                             .output_count = {},
                             .max_output_response = le32(args.output_bytes_max),
                             .flags = le32(static_cast<std::uint32_t>(args.flags)),
                             .reserved2 = {}});
    put_at_least_one_byte(writer, args.input);
}

decoded<ioctl_reply> decode_ioctl_reply(const message_view& message) noexcept {
    const auto body = take_body<ioctl_response>(message, 49);
    if (!body) return std::unexpected(body.error());
    const auto input = variable_part<ioctl_response>(
        message, {.offset = body->input_offset.value(), .length = body->input_count.value()});
    if (!input) return std::unexpected(input.error());
    const auto output = variable_part<ioctl_response>(
        message, {.offset = body->output_offset.value(), .length = body->output_count.value()});
    if (!output) return std::unexpected(output.error());
    return ioctl_reply{
        .code = control_code(body->code.value()), .file = body->file, .input = *input, .output = *output};
}

void encode(byte_writer& writer, const ioctl_reply& reply) noexcept {
    const std::size_t input_offset = writer.position() + sizeof(ioctl_response);
    const std::size_t output_offset = aligned(input_offset + reply.input.size());
    writer.put(ioctl_response{.structure_size = le16(49),
                              .reserved = {},
                              .code = le32(static_cast<std::uint32_t>(reply.code)),
                              .file = reply.file,
                              .input_offset = narrow<le32>(input_offset),
                              .input_count = narrow<le32>(reply.input.size()),
                              .output_offset = narrow<le32>(output_offset),
                              .output_count = narrow<le32>(reply.output.size()),
                              .flags = {},
                              .reserved2 = {}});
    writer.put_bytes(reply.input);
    if (!reply.output.empty()) writer.align_to(8);
    writer.put_bytes(reply.output);
}

}  // namespace sluice::smb::wire
