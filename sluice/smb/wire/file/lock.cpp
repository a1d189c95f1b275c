#include "sluice/smb/wire/file/lock.hpp"

#include "sluice/smb/wire/message/empty_body.hpp"

namespace sluice::smb::wire {
namespace {

struct lock_request {
    le16 structure_size;  //  0  always 48: 24 fixed bytes plus the one mandatory element
    le16 lock_count;      //  2
    le32 sequence;        //  4  number in the lower four bits, index above; reserved in 2.0.2
    file_id file;         //  8
};
static_assert(sizeof(lock_request) == 24 and wire_type<lock_request>);
static_assert(offsetof(lock_request, sequence) == 4 and offsetof(lock_request, file) == 8);

constexpr std::uint32_t sequence_number_mask = 0xf;
constexpr unsigned sequence_index_shift = 4;

}  // namespace

raw_lock_element encode_lock_element(const lock_element& element) noexcept {
    return {.offset = le64(element.offset_bytes),
            .length = le64(element.length_bytes),
            .flags = le32(bits_of(element.flags)),
            .reserved = {}};
}

lock_element lock_list::operator[](std::size_t index) const noexcept {
    ENSURE(index < size());
    const auto raw = bytes_.take_at<raw_lock_element>(index * sizeof(raw_lock_element));
    return {.offset_bytes = raw->offset.value(),
            .length_bytes = raw->length.value(),
            .flags = lock_flags(raw->flags.value())};
}

decoded<lock_args> decode_lock(const message_view& message) noexcept {
    const auto body = take_body<lock_request>(message, 48);
    if (!body) return std::unexpected(body.error());
    const std::size_t count = body->lock_count.value();
    if (count == 0) return std::unexpected(decode_error::missing);
    const auto elements =
        message.body().slice({.offset = sizeof(lock_request), .length = count * sizeof(raw_lock_element)});
    if (!elements) return std::unexpected(decode_error::range_outside_message);
    const std::uint32_t sequence = body->sequence.value();
    return lock_args{.file = body->file,
                     .sequence_number = static_cast<std::uint8_t>(sequence & sequence_number_mask),
                     .sequence_index = sequence >> sequence_index_shift,
                     .elements = lock_list(*elements)};
}

void encode(byte_writer& writer, const lock_args& args) noexcept {
    ENSURE(args.sequence_number <= sequence_number_mask);
    ENSURE(args.sequence_index >> (32 - sequence_index_shift) == 0);
    writer.put(
        lock_request{.structure_size = le16(48),
                     .lock_count = narrow<le16>(args.elements.size()),
                     .sequence = le32(args.sequence_index << sequence_index_shift | args.sequence_number),
                     .file = args.file});
    writer.put_bytes(args.elements.bytes());
}

decoded<lock_reply> decode_lock_reply(const message_view& message) noexcept {
    return decode_empty_body<lock_reply>(message);
}

void encode(byte_writer& writer, const lock_reply&) noexcept {
    encode_empty_body(writer);
}

}  // namespace sluice::smb::wire
