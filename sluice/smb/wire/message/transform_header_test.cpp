#include "sluice/smb/wire/message/transform_header.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const transform_header sample{.signature = {std::byte{1}},
                              .nonce = {std::byte{2}},
                              .message_bytes = 4,
                              .flags = 1,
                              .session_id = 0x1122334455667788};

message_bytes frame_of(const transform_header& header, std::size_t ciphertext_bytes) {
    message_bytes room(256);
    byte_writer writer{mutable_bytes(room)};
    encode(writer, header);
    for (std::size_t i = 0; i < ciphertext_bytes; ++i)
        writer.put(le8(0xcc));
    return copy_of(*writer.finish());
}

TEST(transform_header, round_trips_with_the_parts_that_cryptography_needs) {
    const message_bytes frame = frame_of(sample, 4);
    ASSERT_EQ(frame.size(), 56u);
    const auto message = decode_transform(frame);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->header, sample);
    EXPECT_EQ(message->associated.data(), frame.data() + 20);
    EXPECT_EQ(message->associated.size(), 32u);
    EXPECT_EQ(copy_of(message->ciphertext), some_bytes({0xcc, 0xcc, 0xcc, 0xcc}));
    EXPECT_EQ(bytes_view(frame).take_at<le64>(44)->value(), 0x1122334455667788u);
}

TEST(transform_header, bytes_after_the_ciphertext_are_ignored) {
    EXPECT_EQ(decode_transform(frame_of(sample, 9))->ciphertext.size(), 4u);
}

TEST(transform_header, with_an_incomplete_ciphertext_is_truncated) {
    const message_bytes frame = frame_of(sample, 4);
    for (std::size_t length = 0; length < frame.size(); ++length) {
        EXPECT_EQ(decode_transform(*bytes_view(frame).first(length)).error(), decode_error::truncated);
    }
}

TEST(transform_header, without_the_encrypted_flag_is_rejected) {
    transform_header other = sample;
    other.flags = 2;
    EXPECT_EQ(decode_transform(frame_of(other, 4)).error(), decode_error::bad_value);
}

TEST(transform_header, compression_transforms_and_other_messages_have_different_errors) {
    message_bytes frame = frame_of(sample, 4);
    frame[0] = std::byte{0xfc};
    EXPECT_EQ(decode_transform(frame).error(), decode_error::unsupported);
    frame[0] = std::byte{0xfe};
    EXPECT_EQ(decode_transform(frame).error(), decode_error::bad_protocol_id);
}

}  // namespace
}  // namespace sluice::smb::wire
