#include "sluice/smb/wire/file/write.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

struct write_request {
    le16 structure_size;       //  0  always 49
    le16 data_offset;          //  2
    le32 length;               //  4
    le64 offset;               //  8
    file_id file;              // 16
    le32 channel;              // 32
    le32 remaining_bytes;      // 36
    le16 channel_info_offset;  // 40
    le16 channel_info_length;  // 42
    le32 flags;                // 44
};
static_assert(sizeof(write_request) == 48 and wire_type<write_request>);
static_assert(offsetof(write_request, file) == 16 and offsetof(write_request, flags) == 44);
static_assert(write_request_fixed_bytes == header_bytes + sizeof(write_request));

struct write_response {
    le16 structure_size;       //  0  always 17, though nothing follows the 16 fixed bytes
    le16 reserved;             //  2
    le32 count;                //  4
    le32 remaining;            //  8  reserved, like all following fields
    le16 channel_info_offset;  // 12
    le16 channel_info_length;  // 14
};
static_assert(sizeof(write_response) == 16 and wire_type<write_response>);
static_assert(offsetof(write_response, count) == 4 and offsetof(write_response, channel_info_offset) == 12);

struct write_layout {
    std::size_t data_offset;
    std::size_t data_bytes;
    std::size_t info_offset;
};

void put_fixed(byte_writer& writer, const write_args& args, const write_layout& layout) noexcept {
    const bool with_info = !args.channel_info.empty();
    writer.put(write_request{.structure_size = le16(49),
                             .data_offset = narrow<le16>(layout.data_offset),
                             .length = narrow<le32>(layout.data_bytes),
                             .offset = le64(args.offset_bytes),
                             .file = args.file,
                             .channel = le32(static_cast<std::uint32_t>(args.channel)),
                             .remaining_bytes = le32(args.remaining_bytes),
                             .channel_info_offset = with_info ? narrow<le16>(layout.info_offset) : le16(),
                             .channel_info_length = narrow<le16>(args.channel_info.size()),
                             .flags = le32(bits_of(args.flags))});
}

}  // namespace

decoded<write_args> decode_write(const message_view& message) noexcept {
    const auto body = take_body<write_request>(message, 49);
    if (!body) return std::unexpected(body.error());
    if (body->data_offset.value() > write_data_offset_max) return std::unexpected(decode_error::bad_value);
    const auto channel_info = variable_part<write_request>(
        message, {.offset = body->channel_info_offset.value(), .length = body->channel_info_length.value()});
    if (!channel_info) return std::unexpected(channel_info.error());
    const auto data = variable_part<write_request>(
        message, {.offset = body->data_offset.value(), .length = body->length.value()});
    if (!data) return std::unexpected(data.error());
    return write_args{.file = body->file,
                      .offset_bytes = body->offset.value(),
                      .flags = write_flags(body->flags.value()),
                      .channel = io_channel(body->channel.value()),
                      .remaining_bytes = body->remaining_bytes.value(),
                      .channel_info = *channel_info,
                      .data = *data};
}

void encode(byte_writer& writer, const write_args& args) noexcept {
    const std::size_t data_offset = writer.position() + sizeof(write_request);
    put_fixed(writer, args,
              {.data_offset = data_offset,
               .data_bytes = args.data.size(),
               .info_offset = data_offset + args.data.size()});
    writer.put_bytes(args.data);
    writer.put_bytes(args.channel_info);
}

void encode_write_request_head(byte_writer& writer, const write_args& args, std::size_t data_bytes) noexcept {
    // Here the channel information comes first, so that the data, which are sent separately, end
    // the message.
    const std::size_t info_offset = writer.position() + sizeof(write_request);
    const std::size_t data_offset = info_offset + args.channel_info.size();
    ENSURE(data_offset <= write_data_offset_max, "too much channel information");
    put_fixed(writer, args,
              {.data_offset = data_offset, .data_bytes = data_bytes, .info_offset = info_offset});
    writer.put_bytes(args.channel_info);
}

decoded<write_reply> decode_write_reply(const message_view& message) noexcept {
    const auto body = take_body<write_response>(message, 17);
    if (!body) return std::unexpected(body.error());
    return write_reply{.count_bytes = body->count.value()};
}

void encode(byte_writer& writer, const write_reply& reply) noexcept {
    writer.put(write_response{.structure_size = le16(17),
                              .reserved = {},
                              .count = le32(reply.count_bytes),
                              .remaining = {},
                              .channel_info_offset = {},
                              .channel_info_length = {}});
}

}  // namespace sluice::smb::wire
