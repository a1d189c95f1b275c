#include "sluice/smb/server/core/date_steps.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::server {
namespace {

TEST(date_steps, a_date_that_advances_with_time_is_not_a_step) {
    simulated_clock clock;
    date_steps steps(clock);
    for (int i = 0; i < 100; ++i) {
        clock.advance(std::chrono::hours(7));
        EXPECT_FALSE(steps.have_advanced());
    }
}

TEST(date_steps, a_date_that_is_set_forward_is_a_step_once) {
    simulated_clock clock;
    date_steps steps(clock);
    clock.advance(std::chrono::minutes(10));
    clock.step_utc(std::chrono::days(40));
    EXPECT_TRUE(steps.have_advanced());
    clock.advance(std::chrono::minutes(10));
    EXPECT_FALSE(steps.have_advanced());
}

TEST(date_steps, a_small_correction_and_a_step_back_do_not_count) {
    simulated_clock clock;
    date_steps steps(clock);
    clock.step_utc(std::chrono::minutes(2));
    EXPECT_FALSE(steps.have_advanced());
    clock.step_utc(-std::chrono::days(40));
    EXPECT_FALSE(steps.have_advanced());
}

}  // namespace
}  // namespace sluice::smb::server
