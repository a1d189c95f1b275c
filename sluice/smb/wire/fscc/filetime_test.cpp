#include "sluice/smb/wire/fscc/filetime.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace sluice::smb::wire {
namespace {

using namespace std::chrono;
constexpr auto i64_max = std::numeric_limits<std::int64_t>::max();
constexpr auto i64_min = std::numeric_limits<std::int64_t>::min();

TEST(filetime, has_the_published_number_for_1970) {
    EXPECT_EQ(filetime_of(system_clock::time_point{}), filetime(std::uint64_t{116444736000000000}));
    EXPECT_EQ(filetime_of(unix_time{}), filetime(std::uint64_t{116444736000000000}));
}

TEST(filetime, round_trips_a_day_in_2020) {
    const system_clock::time_point day = sys_days(2020y / 2 / 29) + 12h + 34567us;
    EXPECT_EQ(filetime_of(day).ticks, 116444736000000000ULL + 15829776000345670ULL);
    EXPECT_EQ(time_point_of(filetime_of(day)), day);
    const unix_time same = unix_time_of(filetime_of(day));
    EXPECT_EQ(same, (unix_time{.seconds = 1582977600, .nanoseconds = 34567000}));
    EXPECT_EQ(filetime_of(same), filetime_of(day));
}

TEST(filetime, rounds_down_before_and_after_1970) {
    EXPECT_EQ(filetime_of(system_clock::time_point(199ns)).ticks, filetime_ticks_at_unix_epoch + 1);
    EXPECT_EQ(filetime_of(system_clock::time_point(-1ns)).ticks, filetime_ticks_at_unix_epoch - 1);
    EXPECT_EQ(unix_time_of(filetime(filetime_ticks_at_unix_epoch - 1)),
              (unix_time{.seconds = -1, .nanoseconds = 999999900}));
}

TEST(filetime, keeps_times_that_the_system_clock_does_not_reach) {
    const tick_time far = sys_days(9999y / 12 / 31) + 7h + tick_time::duration(1);
    EXPECT_EQ(tick_time_of(filetime_of(far)), far);
    const tick_time old = sys_days(1601y / 1 / 1) + tick_time::duration(1);
    EXPECT_EQ(filetime_of(old), filetime(std::uint64_t{1}));
    EXPECT_EQ(tick_time_of(filetime(std::uint64_t{1})), old);
    EXPECT_EQ(filetime_of(tick_time::max()).ticks, std::uint64_t(i64_max));
    EXPECT_EQ(filetime_of(tick_time::min()).ticks, 1u);
    EXPECT_EQ(tick_time_of(filetime(~std::uint64_t{0})), tick_time_of(filetime(std::uint64_t(i64_max))));
}

TEST(filetime, times_beyond_either_end_become_the_end) {
    EXPECT_EQ(filetime_of(unix_time{.seconds = i64_min}).ticks, 1u);
    EXPECT_GT(filetime_of(unix_time{.seconds = i64_max}).ticks, std::uint64_t(i64_max) - 20'000'000);
    EXPECT_LE(filetime_of(unix_time{.seconds = i64_max}).ticks, std::uint64_t(i64_max));
    EXPECT_EQ(time_point_of(filetime(~std::uint64_t{0})),
              system_clock::time_point(
                  floor<duration<std::int64_t, std::ratio<1, 10000000>>>(system_clock::duration::max())));
    EXPECT_LT(time_point_of(filetime(std::uint64_t{1})), system_clock::time_point(-292 * 365 * 24h));
    EXPECT_EQ(filetime_of(system_clock::time_point::max()) > filetime_of(system_clock::time_point{}), true);
}

}  // namespace
}  // namespace sluice::smb::wire
