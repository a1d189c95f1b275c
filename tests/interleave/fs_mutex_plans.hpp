#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/interleave/fs_mutex_scenario.hpp"

// The actions of the processes of a scenario, and their verification: for the tests of all
// algorithms.

namespace sluice::interleave {

using fsmutex::entity;
using fsmutex::lock_mode;
using namespace std::chrono_literals;

inline const std::vector<entity> one{entity(1)};
inline const std::vector<entity> two{entity(1), entity(2)};
inline const std::vector<entity> both_ways{entity(1, lock_mode::shared), entity(2)};

inline const std::vector<std::vector<visit>> pair{{{.wanted = one}}, {{.wanted = two}}};
inline const std::vector<std::vector<visit>> three{
    {{.wanted = one}}, {{.wanted = two}}, {{.wanted = both_ways}}};

inline std::vector<entity> many(std::uint64_t count) {
    std::vector<entity> all;
    for (std::uint64_t i = 0; i != count; ++i)
        all.emplace_back(i + 1);
    return all;
}

inline plan with_kills(plan of, unsigned mortals = 1) {
    of.mortals = mortals;
    return of;
}
inline plan within(plan of, std::chrono::nanoseconds passes_at_most) {
    of.passes_at_most = passes_at_most;
    return of;
}
inline plan opened_in_time(plan of) {
    of.opens_in_time = true;
    return of;
}
inline plan on_a_shared_volume(plan of) {
    of.prepare = [](simulated_kernel& kernel) { kernel.share_with_hosts(); };
    return of;
}
// Adds interruptions by up to two signals, at any moment.
inline plan interrupted(plan of) {
    of.prepare = [](simulated_kernel& kernel) { kernel.send_signals(2); };
    return of;
}

// Only waiting processes sleep, and time passes only while all processes sleep.
inline constexpr limits in_no_time{.preemptions_max = 2, .deadlines = timers::when_all_sleep};
inline constexpr limits killing{.preemptions_max = 1, .kills_max = 1, .deadlines = timers::as_preemptions};
inline constexpr limits killing_in_no_time{
    .preemptions_max = 1, .kills_max = 1, .deadlines = timers::when_all_sleep};

// SLUICE_INTERLEAVE_MORE adds this number of preemptions to the limits, for manual runs of minutes
// or hours.
inline void expect_right(const plan& what, limits how, std::uint64_t schedules_min) {
    if (const char* const more = std::getenv("SLUICE_INTERLEAVE_MORE"); more != nullptr) {
        how.preemptions_max += static_cast<unsigned>(std::strtoul(more, nullptr, 10));
        how.schedules_max = ~std::uint64_t{0};
    }
    const report found = explore(what, how);
    EXPECT_EQ(found.problem, "") << testing::PrintToString(found.schedule);
    EXPECT_TRUE(found.is_complete) << "after " << found.schedules << " schedules";
    EXPECT_GE(found.schedules, schedules_min);
    testing::Test::RecordProperty(how.kills_max == 0 ? "schedules" : "schedules_with_a_kill",
                                  static_cast<int>(found.schedules));
}

}  // namespace sluice::interleave
