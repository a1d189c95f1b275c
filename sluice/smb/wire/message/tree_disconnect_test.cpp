#include "sluice/smb/wire/message/tree_disconnect.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

TEST(tree_disconnect, has_an_empty_body_of_four_bytes) {
    EXPECT_EQ(body_of(tree_disconnect_args{}), some_bytes({4, 0, 0, 0}));
    EXPECT_EQ(body_of(tree_disconnect_reply{}), some_bytes({4, 0, 0, 0}));
}

TEST(tree_disconnect, is_unchanged_by_a_round_trip) {
    expect_round_trip(tree_disconnect_args{}, decode_tree_disconnect);
    expect_round_trip(tree_disconnect_reply{}, decode_tree_disconnect_reply);
}

TEST(tree_disconnect, truncated_or_of_another_size_is_rejected) {
    expect_fixed_part_checked(tree_disconnect_args{}, 4, decode_tree_disconnect);
    expect_fixed_part_checked(tree_disconnect_reply{}, 4, decode_tree_disconnect_reply);
}

}  // namespace
}  // namespace sluice::smb::wire
