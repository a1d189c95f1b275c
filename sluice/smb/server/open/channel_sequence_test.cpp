#include "sluice/smb/server/open/channel_sequence.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

// A request that is served at once. Returns whether it came in sequence.
[[nodiscard]] bool serve(channel_sequence& of, std::uint16_t number, bool is_replay = false) {
    const auto arrived = of.arrived(number, is_replay);
    if (arrived) of.finished(*arrived);
    return arrived.has_value();
}

TEST(channel_sequence, goes_forward_by_less_than_half_of_its_numbers) {
    channel_sequence sequence;
    EXPECT_TRUE(serve(sequence, 0));
    EXPECT_FALSE(serve(sequence, 0x8000));
    EXPECT_FALSE(serve(sequence, 0xffff));
    EXPECT_TRUE(serve(sequence, 0x7fff));
    EXPECT_FALSE(serve(sequence, 0x7ffe));
}

TEST(channel_sequence, wraps_from_its_last_number_to_zero) {
    channel_sequence sequence;
    EXPECT_TRUE(serve(sequence, 0x7fff));
    EXPECT_TRUE(serve(sequence, 0xffff - 1));
    EXPECT_TRUE(serve(sequence, 1));
    EXPECT_FALSE(serve(sequence, 0xffff));
}

TEST(channel_sequence, begins_at_the_number_of_the_create) {
    channel_sequence sequence;
    sequence.begin_at(9);
    EXPECT_FALSE(serve(sequence, 8));
    EXPECT_TRUE(serve(sequence, 9));
}

TEST(channel_sequence, refuses_a_replay_while_requests_before_the_failure_are_in_flight) {
    channel_sequence sequence;
    const auto first = sequence.arrived(0, false);
    ASSERT_TRUE(first.has_value());
    EXPECT_FALSE(sequence.arrived(1, true)) << "the first may still write";
    sequence.finished(*first);
    EXPECT_TRUE(sequence.arrived(1, true).has_value());
}

TEST(channel_sequence, refuses_a_replay_while_requests_before_a_reconnect_are_in_flight) {
    channel_sequence sequence;
    const auto first = sequence.arrived(0, false);
    ASSERT_TRUE(first.has_value());
    sequence.continue_at(0);  // the number of the new session happens to be the same
    EXPECT_FALSE(sequence.arrived(0, true)) << "the first may still write";
    EXPECT_TRUE(serve(sequence, 0));
    sequence.finished(*first);
    EXPECT_TRUE(sequence.arrived(0, true).has_value());
}

TEST(channel_sequence, refuses_only_what_changes_something) {
    EXPECT_TRUE(is_refused_when_late(wire::command::write));
    EXPECT_TRUE(is_refused_when_late(wire::command::set_info));
    EXPECT_TRUE(is_refused_when_late(wire::command::ioctl));
    EXPECT_FALSE(is_refused_when_late(wire::command::read));
    EXPECT_FALSE(is_refused_when_late(wire::command::close));
}

}  // namespace
}  // namespace sluice::smb::server
