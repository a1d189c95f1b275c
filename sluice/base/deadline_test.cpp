#include "sluice/base/deadline.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock::time_point;
using utc = std::chrono::system_clock::time_point;

TEST(deadline, none_never_ends) {
    const deadline d;
    EXPECT_TRUE(d.is_none());
    EXPECT_EQ(d.remaining(steady(1s), steady(9s), utc(9s)), deadline::duration::max());
    EXPECT_EQ(d.steady_end(steady(1s), utc(9s)), steady::max());
}

TEST(deadline, a_relative_one_counts_from_the_start_of_the_operation) {
    const deadline d = 5s;
    EXPECT_EQ(d.remaining(steady(10s), steady(12s), utc(0s)), 3s);
    EXPECT_EQ(d.remaining(steady(10s), steady(99s), utc(0s)), 0s);
    EXPECT_EQ(d.steady_end(steady(10s), utc(0s)), steady(15s));
}

TEST(deadline, zero_and_negative_durations_mean_do_not_wait) {
    EXPECT_TRUE(deadline::zero().is_zero());
    EXPECT_TRUE(deadline(-1s).is_zero());
    EXPECT_FALSE(deadline(1ns).is_zero());
}

TEST(deadline, absolute_ones_follow_their_own_clock) {
    EXPECT_EQ(deadline(steady(20s)).remaining(steady(0s), steady(12s), utc(100s)), 8s);
    EXPECT_EQ(deadline(utc(120s)).remaining(steady(0s), steady(12s), utc(100s)), 20s);
    EXPECT_EQ(deadline(utc(120s)).steady_end(steady(12s), utc(100s)), steady(32s));
}

TEST(deadline, a_duration_beyond_64_bits_of_nanoseconds_does_not_wrap) {
    const deadline d = std::chrono::hours(24 * 365 * 1000);
    EXPECT_EQ(d.remaining(steady(0s), steady(0s), utc(0s)), deadline::duration::max());
    EXPECT_EQ(d.steady_end(steady(10s), utc(0s)), steady::max());
}

}  // namespace
}  // namespace sluice
