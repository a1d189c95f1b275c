#include "sluice/smb/wire/message/echo.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

TEST(echo, says_nothing_in_four_bytes) {
    EXPECT_EQ(body_of(echo_args{}), some_bytes({4, 0, 0, 0}));
    EXPECT_EQ(body_of(echo_reply{}), some_bytes({4, 0, 0, 0}));
}

TEST(echo, comes_back_as_it_was_encoded) {
    expect_round_trip(echo_args{}, decode_echo);
    expect_round_trip(echo_reply{}, decode_echo_reply);
}

TEST(echo, cut_short_or_of_another_size_is_refused) {
    expect_fixed_part_checked(echo_args{}, 4, decode_echo);
    expect_fixed_part_checked(echo_reply{}, 4, decode_echo_reply);
}

}  // namespace
}  // namespace sluice::smb::wire
