#include "bench/harness/hardware_counters.hpp"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <chrono>
#include <ctime>

namespace sluice::bench {
namespace {

std::chrono::nanoseconds processor_time() {
    timespec spent{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

/// Measured by this thread's own clock: on a busy machine, it may get little of a time span.
void busy_for(std::chrono::milliseconds time) {
    const auto end = processor_time() + time;
    while (processor_time() < end) {}
}

// A kernel clock replaces all three: it counts everywhere, in nanoseconds.
constexpr hardware_counters::event task_clock{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK};

TEST(hardware_counters, count_the_work_of_this_thread_between_start_and_stop) {
    hardware_counters counters({task_clock, task_clock, task_clock});
    busy_for(std::chrono::milliseconds(20));
    counters.start();
    busy_for(std::chrono::milliseconds(5));
    const auto counted = counters.stop();
    if (not counted) GTEST_SKIP() << "perf_event_open is not permitted";
    EXPECT_GT(counted->cycles, 1e6);
    EXPECT_LT(counted->cycles, 19e6);
    EXPECT_GT(counted->l1_misses, 1e6);
}

TEST(hardware_counters, return_no_figures_for_unavailable_events) {
    hardware_counters counters({task_clock, {.type = PERF_TYPE_SOFTWARE, .config = 1'000'000}, task_clock});
    counters.start();
    EXPECT_FALSE(counters.stop().has_value());
}

}  // namespace
}  // namespace sluice::bench
