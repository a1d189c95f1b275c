#include "sluice/smb/wire/file/read.hpp"

#include "sluice/smb/wire/message/message_body.hpp"

namespace sluice::smb::wire {
namespace {

struct read_request {
    le16 structure_size;       //  0  always 49: 48 fixed bytes plus "at least one" variable byte
    le8 padding;               //  2
    le8 flags;                 //  3
    le32 length;               //  4
    le64 offset;               //  8
    file_id file;              // 16
    le32 minimum_count;        // 32
    le32 channel;              // 36
    le32 remaining_bytes;      // 40
    le16 channel_info_offset;  // 44  from the SMB2 header, like all offsets
    le16 channel_info_length;  // 46
};
static_assert(sizeof(read_request) == 48 and wire_type<read_request>);
static_assert(offsetof(read_request, offset) == 8 and offsetof(read_request, channel) == 36);

struct read_response {
    le16 structure_size;  //  0  always 17
    le8 data_offset;      //  2
    le8 reserved;         //  3
    le32 data_length;     //  4
    le32 data_remaining;  //  8
    le32 flags;           // 12
};
static_assert(sizeof(read_response) == 16 and wire_type<read_response>);
static_assert(offsetof(read_response, data_length) == 4 and offsetof(read_response, flags) == 12);
static_assert(read_reply_data_offset == header_bytes + sizeof(read_response));

void put_head(byte_writer& writer, const read_reply& reply, std::size_t data_bytes) noexcept {
    writer.put(read_response{.structure_size = le16(17),
                             .data_offset = narrow<le8>(writer.position() + sizeof(read_response)),
                             .reserved = {},
                             .data_length = narrow<le32>(data_bytes),
                             .data_remaining = le32(reply.remaining_bytes),
                             .flags = le32(reply.flags)});
}

}  // namespace

decoded<read_args> decode_read(const message_view& message) noexcept {
    const auto body = take_body<read_request>(message, 49);
    if (!body) return std::unexpected(body.error());
    const auto channel_info = variable_part<read_request>(
        message, {.offset = body->channel_info_offset.value(), .length = body->channel_info_length.value()});
    if (!channel_info) return std::unexpected(channel_info.error());
    return read_args{.file = body->file,
                     .offset_bytes = body->offset.value(),
                     .length_bytes = body->length.value(),
                     .minimum_bytes = body->minimum_count.value(),
                     .padding = body->padding.value(),
                     .flags = read_flags(body->flags.value()),
                     .channel = io_channel(body->channel.value()),
                     .remaining_bytes = body->remaining_bytes.value(),
                     .channel_info = *channel_info};
}

void encode(byte_writer& writer, const read_args& args) noexcept {
    const std::size_t info_offset = writer.position() + sizeof(read_request);
    writer.put(
        read_request{.structure_size = le16(49),
                     .padding = le8(args.padding),
                     .flags = le8(bits_of(args.flags)),
                     .length = le32(args.length_bytes),
                     .offset = le64(args.offset_bytes),
                     .file = args.file,
                     .minimum_count = le32(args.minimum_bytes),
                     .channel = le32(static_cast<std::uint32_t>(args.channel)),
                     .remaining_bytes = le32(args.remaining_bytes),
                     .channel_info_offset = args.channel_info.empty() ? le16() : narrow<le16>(info_offset),
                     .channel_info_length = narrow<le16>(args.channel_info.size())});
    put_at_least_one_byte(writer, args.channel_info);
}

decoded<read_reply> decode_read_reply(const message_view& message) noexcept {
    const auto body = take_body<read_response>(message, 17);
    if (!body) return std::unexpected(body.error());
    const auto data = variable_part<read_response>(
        message, {.offset = body->data_offset.value(), .length = body->data_length.value()});
    if (!data) return std::unexpected(data.error());
    return read_reply{
        .data = *data, .remaining_bytes = body->data_remaining.value(), .flags = body->flags.value()};
}

void encode(byte_writer& writer, const read_reply& reply) noexcept {
    put_head(writer, reply, reply.data.size());
    writer.put_bytes(reply.data);
}

void encode_read_reply_head(byte_writer& writer, std::size_t data_bytes) noexcept {
    put_head(writer, {}, data_bytes);
}

}  // namespace sluice::smb::wire
