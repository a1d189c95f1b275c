#include "sluice/smb/wire/message/frame.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

TEST(frame, prefix_is_a_zero_and_the_length_most_significant_byte_first) {
    std::array<std::byte, 4> room{};
    byte_writer writer{mutable_bytes(room)};
    encode_frame_prefix(writer, 0x010203);
    EXPECT_EQ(copy_of(*writer.finish()), some_bytes({0, 1, 2, 3}));
    EXPECT_EQ(decode_frame_prefix(*writer.finish(), frame_bytes_max), 0x010203u);
}

TEST(frame, longer_than_the_limit_of_the_caller_is_rejected) {
    EXPECT_EQ(decode_frame_prefix(some_bytes({0, 0, 1, 0}), 256), 256u);
    EXPECT_EQ(decode_frame_prefix(some_bytes({0, 0, 1, 1}), 256), std::unexpected(decode_error::too_long));
}

TEST(frame, incomplete_prefix_is_truncated) {
    EXPECT_EQ(decode_frame_prefix(some_bytes({0, 0, 1}), 256), std::unexpected(decode_error::truncated));
}

TEST(frame, prefix_of_a_netbios_keepalive_is_rejected) {
    EXPECT_EQ(decode_frame_prefix(some_bytes({0x85, 0, 0, 0}), frame_bytes_max),
              std::unexpected(decode_error::bad_protocol_id));
}

TEST(frame, kind_follows_from_the_first_four_bytes) {
    EXPECT_EQ(kind_of_frame(some_bytes({0xfe, 'S', 'M', 'B'})), frame_kind::smb2);
    EXPECT_EQ(kind_of_frame(some_bytes({0xff, 'S', 'M', 'B'})), frame_kind::smb1);
    EXPECT_EQ(kind_of_frame(some_bytes({0xfd, 'S', 'M', 'B'})), frame_kind::encrypted);
    EXPECT_EQ(kind_of_frame(some_bytes({0xfc, 'S', 'M', 'B'})), frame_kind::compressed);
    EXPECT_EQ(kind_of_frame(some_bytes({'G', 'E', 'T', ' '})),
              std::unexpected(decode_error::bad_protocol_id));
    EXPECT_EQ(kind_of_frame(some_bytes({0xfe, 'S', 'M'})), std::unexpected(decode_error::truncated));
}

TEST(frame_death, an_encoded_length_of_more_than_three_bytes_stops_the_program) {
    std::array<std::byte, 4> room{};
    byte_writer writer{mutable_bytes(room)};
    EXPECT_DEATH(encode_frame_prefix(writer, 0x1000000), "split the compound");
}

}  // namespace
}  // namespace sluice::smb::wire
