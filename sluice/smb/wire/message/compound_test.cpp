#include "sluice/smb/wire/message/compound.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

/// Returns a frame of messages, each a header and `body_bytes`, whose NextCommand fields are
/// `next`.
message_bytes frame_of(std::initializer_list<std::uint32_t> next, std::size_t body_bytes) {
    message_bytes room(4096);
    byte_writer writer{mutable_bytes(room)};
    std::uint64_t message_id = 1;
    for (const std::uint32_t next_command : next) {
        encode(writer, header{.next_command_bytes = next_command, .message_id = message_id++});
        writer.put_zeros(body_bytes);
    }
    return copy_of(*writer.finish());
}

std::expected<std::size_t, decode_error> refused(decode_error why) {
    return std::unexpected(why);
}

TEST(compound, is_parsed_by_next_command) {
    const message_bytes frame = frame_of({72, 72, 0}, 8);
    compound_reader reader(frame, 3);
    for (std::uint64_t id = 1; id <= 3; ++id) {
        ASSERT_FALSE(reader.done());
        const auto message = reader.next();
        ASSERT_TRUE(message);
        EXPECT_EQ(message->header().message_id, id);
        EXPECT_EQ(message->bytes().data(), frame.data() + 72 * (id - 1));
        EXPECT_EQ(message->bytes().size(), 72u);
    }
    EXPECT_TRUE(reader.done());
    EXPECT_EQ(count_messages(frame, 3), 3u);
}

TEST(compound, a_single_message_has_all_the_bytes_of_the_frame) {
    const message_bytes frame = frame_of({0}, 13);
    compound_reader reader(frame, 1);
    EXPECT_EQ(reader.next()->bytes().size(), 77u);
    EXPECT_TRUE(reader.done());
}

TEST(compound, more_messages_than_allowed_are_rejected) {
    EXPECT_EQ(count_messages(frame_of({72, 72, 0}, 8), 2), refused(decode_error::too_many));
    EXPECT_EQ(count_messages(frame_of({0}, 8), 0), refused(decode_error::too_many));
}

TEST(compound, a_next_header_that_is_not_at_a_multiple_of_eight_is_rejected) {
    EXPECT_EQ(count_messages(frame_of({76, 0}, 12), 9), refused(decode_error::misaligned));
}

TEST(compound, a_next_header_within_this_one_is_rejected) {
    EXPECT_EQ(count_messages(frame_of({8, 0}, 8), 9), refused(decode_error::bad_chain));
    EXPECT_EQ(count_messages(frame_of({56, 0}, 8), 9), refused(decode_error::bad_chain));
}

TEST(compound, a_next_header_at_or_beyond_the_end_is_rejected) {
    EXPECT_EQ(count_messages(frame_of({144, 0}, 8), 9), refused(decode_error::range_outside_message));
    EXPECT_EQ(count_messages(frame_of({0xfffffff8, 0}, 8), 9), refused(decode_error::range_outside_message));
    EXPECT_EQ(count_messages(frame_of({136, 0}, 8), 9), refused(decode_error::truncated));
}

TEST(compound, ends_at_the_first_error) {
    const message_bytes frame = frame_of({72, 8, 0}, 8);
    compound_reader reader(frame, 3);
    EXPECT_TRUE(reader.next());
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.done());
}

TEST(compound, without_bytes_is_truncated) {
    EXPECT_EQ(count_messages({}, 1), refused(decode_error::truncated));
}

}  // namespace
}  // namespace sluice::smb::wire
