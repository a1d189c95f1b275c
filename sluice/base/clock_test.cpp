#include "sluice/base/clock.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#include "sluice/base/deadline.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

// A deadline accepts the times of a clock_source without conversion.
static_assert(std::is_same_v<clock_source::steady_time, std::chrono::steady_clock::time_point>);
static_assert(std::is_same_v<clock_source::utc_time, std::chrono::system_clock::time_point>);

TEST(simulated_clock, does_not_move_until_advanced) {
    simulated_clock clock;
    const auto steady = clock.steady_now();
    const auto utc = clock.utc_now();
    EXPECT_EQ(clock.steady_now(), steady);
    clock.advance(3s);
    EXPECT_EQ(clock.steady_now(), steady + 3s);
    EXPECT_EQ(clock.utc_now(), utc + 3s);
}

TEST(simulated_clock, advances_to_a_time_but_never_back) {
    simulated_clock clock;
    const auto steady = clock.steady_now();
    clock.advance_to(steady + 1h);
    clock.advance_to(steady);
    EXPECT_EQ(clock.steady_now(), steady + 1h);
}

TEST(simulated_clock, setting_the_date_does_not_change_the_steady_clock) {
    simulated_clock clock;
    const auto steady = clock.steady_now();
    const auto utc = clock.utc_now();
    clock.step_utc(-24h);
    EXPECT_EQ(clock.steady_now(), steady);
    EXPECT_EQ(clock.utc_now(), utc - 24h);
}

TEST(simulated_clock, two_of_them_begin_at_the_same_time) {
    EXPECT_EQ(simulated_clock().steady_now(), simulated_clock().steady_now());
    EXPECT_EQ(simulated_clock().utc_now(), simulated_clock().utc_now());
}

TEST(simulated_clock_death, going_back_stops_the_program) {
    EXPECT_DEATH(simulated_clock().advance(-1ns), "does not go back");
}

TEST(system_clock_source, shows_the_time_of_the_machine) {
    const system_clock_source clock;
    const auto before = std::chrono::steady_clock::now();
    const auto seen = clock.steady_now();
    EXPECT_GE(seen, before);
    EXPECT_LE(seen, std::chrono::steady_clock::now());
    EXPECT_LT(std::chrono::abs(clock.utc_now() - std::chrono::system_clock::now()), 1min);
}

}  // namespace
}  // namespace sluice
