#include "sluice/smb/wire/message/echo.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

TEST(echo, has_an_empty_body_of_four_bytes) {
    EXPECT_EQ(body_of(echo_args{}), some_bytes({4, 0, 0, 0}));
    EXPECT_EQ(body_of(echo_reply{}), some_bytes({4, 0, 0, 0}));
}

TEST(echo, is_unchanged_by_a_round_trip) {
    expect_round_trip(echo_args{}, decode_echo);
    expect_round_trip(echo_reply{}, decode_echo_reply);
}

TEST(echo, truncated_or_of_another_size_is_rejected) {
    expect_fixed_part_checked(echo_args{}, 4, decode_echo);
    expect_fixed_part_checked(echo_reply{}, 4, decode_echo_reply);
}

}  // namespace
}  // namespace sluice::smb::wire
