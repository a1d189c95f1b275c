#include "sluice/smb/server/open/channel_sequence.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

using verdict = channel_sequence::verdict;

// A request that is served at once.
[[nodiscard]] verdict serve(channel_sequence& of, std::uint16_t number, bool is_replay = false) {
    const verdict said = of.arrived(number, is_replay);
    if (said == verdict::current) of.finished(number);
    return said;
}

TEST(channel_sequence, goes_forward_by_less_than_half_of_its_numbers) {
    channel_sequence sequence;
    EXPECT_EQ(serve(sequence, 0), verdict::current);
    EXPECT_EQ(serve(sequence, 0x8000), verdict::stale);
    EXPECT_EQ(serve(sequence, 0xffff), verdict::stale);
    EXPECT_EQ(serve(sequence, 0x7fff), verdict::current);
    EXPECT_EQ(serve(sequence, 0x7ffe), verdict::stale);
}

TEST(channel_sequence, wraps_from_its_last_number_to_zero) {
    channel_sequence sequence;
    EXPECT_EQ(serve(sequence, 0x7fff), verdict::current);
    EXPECT_EQ(serve(sequence, 0xffff - 1), verdict::current);
    EXPECT_EQ(serve(sequence, 1), verdict::current);
    EXPECT_EQ(serve(sequence, 0xffff), verdict::stale);
}

TEST(channel_sequence, refuses_a_replay_while_requests_before_the_failure_are_in_flight) {
    channel_sequence sequence;
    ASSERT_EQ(sequence.arrived(0, false), verdict::current);
    EXPECT_EQ(sequence.arrived(1, true), verdict::stale) << "the first may still write";
    sequence.finished(0);
    EXPECT_EQ(sequence.arrived(1, true), verdict::current);
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
