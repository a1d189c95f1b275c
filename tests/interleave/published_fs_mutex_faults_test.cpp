// The faults of the published atomic append that depend on the order of events, each reintroduced
// into a small queue that has no problem without it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/interleave/fs_mutex_scenario.hpp"
#include "tests/interleave/published_fs_mutex.hpp"

namespace sluice::interleave {
namespace {

using fsmutex::entity;
using namespace std::chrono_literals;

const std::vector<entity> one{entity(1)};
const std::vector<entity> other{entity(2)};
using visits = std::vector<std::vector<visit>>;
const visits pair{{{.wanted = one}}, {{.wanted = one}}};

template <fault Fault>
plan plan_with(const visits& processes) {
    return {
        .open =
            [](const fsmutex::dependencies& from) { return std::make_unique<published_append<Fault>>(from); },
        .is_in_order = {},
        .processes = processes};
}

// Returns the problem with the fault; checks that there is none without it.
template <fault Fault>
std::string found(const visits& processes, const limits& within = {}, const auto&... change) {
    const auto explored = [&]<fault Put>() {
        plan tried = plan_with<Put>(processes);
        (change(tried), ...);
        return explore(tried, within);
    };
    const report sound = explored.template operator()<fault::none>();
    EXPECT_EQ(sound.problem, "") << "without the fault, " << testing::PrintToString(sound.schedule);
    EXPECT_TRUE(sound.is_complete) << sound.schedules;
    return explored.template operator()<Fault>().problem;
}

constexpr limits as_fast_as_can_be{.preemptions_max = 1, .deadlines = timers::when_all_sleep};
const auto opens_in_time = [](plan& of) { of.opens_in_time = true; };
const auto first_is_mortal = [](plan& of) { of.mortals = 1; };

TEST(published_append, fault_1_lets_the_next_opener_truncate_the_queue) {
    EXPECT_EQ(found<fault::guard_is_lost>(pair, {.preemptions_max = 1}, opens_in_time),
              "two processes hold one entity");
}
TEST(published_append, fault_2_never_ends_an_unlock_while_an_older_lock_is_held) {
    EXPECT_EQ(found<fault::unlock_rereads>({{{.wanted = one, .stays = 30ms}},
                                            {{.wanted = other}, {.wanted = other}, {.wanted = other}}},
                                           as_fast_as_can_be),
              "a thread does not terminate");
}
TEST(published_append, fault_3_keeps_waiters_from_sleeping) {
    EXPECT_EQ(found<fault::own_lock_is_dropped>({{{.wanted = one, .stays = 30ms}}, {{.wanted = one}}},
                                                as_fast_as_can_be),
              "a thread does not terminate");
}
TEST(published_append, fault_4_waits_for_dead_processes) {
    EXPECT_EQ(found<fault::dead_are_not_found>(pair, {.preemptions_max = 1, .kills_max = 1}, first_is_mortal),
              "a thread does not terminate");
}
TEST(published_append, fault_5_refuses_a_deadline) {
    EXPECT_EQ(found<fault::deadline_is_refused>(
                  {{{.wanted = one, .stays = 30ms}}, {{.wanted = one, .within = 50ms}}}, as_fast_as_can_be),
              "a request failed");
}
TEST(published_append, fault_6_confuses_the_record_of_another_with_its_own) {
    // It erases the other record, and its own stays forever, as if its owner had died.
    EXPECT_EQ(found<fault::no_hashes>(pair), "a death was reported that did not happen");
}
// The first two processes to open are threads of one process, with one descriptor; the first
// outlives the second.
template <fault Fault>
plan threads_of_one_process() {
    plan made = plan_with<Fault>({{{.wanted = one}, {.wanted = other, .stays = 50ms}}, {{.wanted = one}}});
    const auto shared = std::make_shared<std::pair<unsigned, int>>();
    made.prepare = [shared](simulated_kernel&) { *shared = {0, -1}; };
    made.open = [shared](const fsmutex::dependencies& from) {
        auto& [count, descriptor] = *shared;
        auto opened = std::make_unique<published_append<Fault>>(from, ++count == 2 ? descriptor : -1);
        descriptor = opened->descriptor();
        return opened;
    };
    return made;
}
TEST(published_append, fault_9_appends_when_another_thread_erases) {
    const limits within{.preemptions_max = 2, .deadlines = timers::when_all_sleep};
    EXPECT_EQ(explore(threads_of_one_process<fault::none>(), within).problem, "");
    EXPECT_NE(explore(threads_of_one_process<fault::flag_is_toggled>(), within).problem, "");
}
TEST(published_append, fault_10_leaves_its_file) {
    EXPECT_EQ(found<fault::file_stays>(pair, {.preemptions_max = 0}), "a file remains");
}
TEST(published_append, fault_11_moves_the_header_backwards) {
    std::uint64_t before = 0;
    const auto watch = [&](plan& of) {
        of.prepare = [&](simulated_kernel&) { before = 0; };
        of.inspect = [&](const std::byte* file, std::size_t) {
            std::uint64_t now = 0;
            std::memcpy(&now, file, sizeof now);
            return std::exchange(before, std::max(before, now)) > now ? "the header moves backwards"
                                                                      : nullptr;
        };
    };
    EXPECT_EQ(found<fault::header_goes_back>({{{.wanted = one}, {.wanted = one}, {.wanted = one}},
                                              {{.wanted = other}, {.wanted = other}}},
                                             {.preemptions_max = 1}, watch),
              "the header moves backwards");
}
TEST(published_append, fault_13_loses_a_request_if_appends_race) {
    EXPECT_EQ(found<fault::append_races>(pair), "two processes hold one entity");
}

}  // namespace
}  // namespace sluice::interleave
