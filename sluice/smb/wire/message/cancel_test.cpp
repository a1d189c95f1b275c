#include "sluice/smb/wire/message/cancel.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

TEST(cancel, says_nothing_in_four_bytes) {
    EXPECT_EQ(body_of(cancel_args{}), some_bytes({4, 0, 0, 0}));
    expect_round_trip(cancel_args{}, decode_cancel);
}

TEST(cancel, cut_short_or_of_another_size_is_refused) {
    expect_fixed_part_checked(cancel_args{}, 4, decode_cancel);
}

}  // namespace
}  // namespace sluice::smb::wire
