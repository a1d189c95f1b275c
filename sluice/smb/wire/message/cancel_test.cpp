#include "sluice/smb/wire/message/cancel.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

TEST(cancel, has_an_empty_body_of_four_bytes) {
    EXPECT_EQ(body_of(cancel_args{}), some_bytes({4, 0, 0, 0}));
    expect_round_trip(cancel_args{}, decode_cancel);
}

TEST(cancel, truncated_or_of_another_size_is_rejected) {
    expect_fixed_part_checked(cancel_args{}, 4, decode_cancel);
}

}  // namespace
}  // namespace sluice::smb::wire
