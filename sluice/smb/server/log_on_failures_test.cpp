#include "sluice/smb/server/log_on_failures.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/server/limits.hpp"

namespace sluice::smb::server {
namespace {

using std::chrono::milliseconds;

TEST(log_on_failures, answers_the_first_ones_at_once_and_later_ones_ever_later_up_to_a_limit) {
    simulated_clock clock;
    log_on_failures failures(clock);
    for (unsigned i = 0; i != limits::log_on_failures_free; ++i)
        EXPECT_EQ(failures.failed("10.0.0.1"), milliseconds(0));
    milliseconds before{0};
    for (int i = 0; i != 5; ++i) {
        const milliseconds delay = failures.failed("10.0.0.1");
        EXPECT_GT(delay, before);
        before = delay;
    }
    for (int i = 0; i != 50; ++i)
        before = failures.failed("10.0.0.1");
    EXPECT_EQ(before, limits::log_on_delay_max);
    EXPECT_EQ(failures.failed("10.0.0.2"), milliseconds(0)) << "another address is not held to account";
}

TEST(log_on_failures, are_forgiven_by_a_success_and_by_time) {
    simulated_clock clock;
    log_on_failures failures(clock);
    for (int i = 0; i != 20; ++i)
        (void)failures.failed("a");
    failures.succeeded("a");
    EXPECT_EQ(failures.failed("a"), milliseconds(0));
    for (int i = 0; i != 20; ++i)
        (void)failures.failed("a");
    clock.advance(log_on_failures::forgiven_after + std::chrono::seconds(1));
    EXPECT_EQ(failures.failed("a"), milliseconds(0));
}

TEST(log_on_failures, remember_a_bounded_number_of_addresses_and_forget_the_quietest) {
    simulated_clock clock;
    log_on_failures failures(clock);
    for (int i = 0; i != 20; ++i)
        (void)failures.failed("guesser");
    for (std::size_t i = 0; i != 2 * log_on_failures::addresses_max; ++i) {
        clock.advance(std::chrono::milliseconds(1));
        (void)failures.failed("address " + std::to_string(i));
        if (i % 100 == 0) EXPECT_GT(failures.failed("guesser"), milliseconds(0));
    }
}

}  // namespace
}  // namespace sluice::smb::server
