#include "sluice/cli/status/loop_delays.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "sluice/io/best_available.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

TEST(loop_delays, a_probe_that_waits_counts_with_the_time_that_it_has_waited) {
    const auto loop = io::best_available();
    ASSERT_TRUE(loop.has_value());
    simulated_clock clock;
    loop_delays delays({loop->get()}, clock);
    EXPECT_EQ(delays.milliseconds(), std::vector<double>{0});
    delays.probe();
    clock.advance(7ms);
    EXPECT_EQ(delays.milliseconds(), std::vector<double>{7});
    EXPECT_EQ((*loop)->invoke_posted_items().value(), 1);
    clock.advance(5ms);
    EXPECT_EQ(delays.milliseconds(), std::vector<double>{7});
    delays.probe();
    EXPECT_EQ((*loop)->invoke_posted_items().value(), 1);
    EXPECT_EQ(delays.milliseconds(), std::vector<double>{0});
}

TEST(loop_delays, a_stuck_loop_collects_no_further_probes) {
    const auto loop = io::best_available();
    ASSERT_TRUE(loop.has_value());
    simulated_clock clock;
    loop_delays delays({loop->get()}, clock);
    for (int i = 0; i != 10; ++i) {
        delays.probe();
        clock.advance(1000ms);
    }
    EXPECT_EQ(delays.milliseconds(), std::vector<double>{10'000});
    EXPECT_EQ((*loop)->invoke_posted_items().value(), 1);
}

}  // namespace
}  // namespace sluice::cli
