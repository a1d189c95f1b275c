#include "sluice/smb/wire/message/logoff.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

TEST(logoff, has_an_empty_body_of_four_bytes) {
    EXPECT_EQ(body_of(logoff_args{}), some_bytes({4, 0, 0, 0}));
    EXPECT_EQ(body_of(logoff_reply{}), some_bytes({4, 0, 0, 0}));
}

TEST(logoff, is_unchanged_by_a_round_trip) {
    expect_round_trip(logoff_args{}, decode_logoff);
    expect_round_trip(logoff_reply{}, decode_logoff_reply);
}

TEST(logoff, truncated_or_of_another_size_is_rejected) {
    expect_fixed_part_checked(logoff_args{}, 4, decode_logoff);
    expect_fixed_part_checked(logoff_reply{}, 4, decode_logoff_reply);
}

}  // namespace
}  // namespace sluice::smb::wire
