// The algorithms of fsmutex that use only locks of the kernel, as they are shipped, in every order
// of the steps of two or three processes (within the given limits), with a kill at every step.

#include <utility>

#include "sluice/fsmutex/byte_ranges.hpp"
#include "sluice/fsmutex/lock_files.hpp"
#include "tests/interleave/fs_mutex_plans.hpp"

namespace sluice::interleave {
namespace {

using opened = std::unique_ptr<fsmutex::shared_fs_mutex>;

// Returns null on failure, which the scenario reports.
opened open_files(const fsmutex::dependencies& from) {
    auto made = fsmutex::lock_files::open({}, "/simulated/locks", from);
    return made ? std::move(*made) : nullptr;
}
opened open_ranges(const fsmutex::dependencies& from) {
    auto made = fsmutex::byte_ranges::open({}, "/simulated/ranges", from);
    return made ? std::move(*made) : nullptr;
}

plan files_plan(std::vector<std::vector<visit>> processes) {
    return {.open = open_files, .is_in_order = {}, .processes = std::move(processes)};
}
plan ranges_plan(std::vector<std::vector<visit>> processes) {
    return {.open = open_ranges,
            .is_in_order = {},
            .processes = std::move(processes),
            .reports_deaths = false,
            .leaves_files = 1};
}

const std::vector<std::vector<visit>> same{{{.wanted = one}}, {{.wanted = one}}};
const std::vector<std::vector<visit>> others_deadline{
    {{.wanted = one, .stays = 30ms}}, {{.wanted = two, .within = 10ms}, {.wanted = two, .tries = true}}};
const std::vector<std::vector<visit>> deadlines{{{.wanted = one, .within = 1ms}},
                                                {{.wanted = two, .within = 1ms}}};
constexpr limits three_in_no_time{.preemptions_max = 1, .deadlines = timers::when_all_sleep};

TEST(lock_files_in_every_order, let_no_time_pass_if_no_process_dies) {
    expect_right(within(files_plan(pair), 0ms), in_no_time, 1000);
}
TEST(lock_files_in_every_order, exclude_three_processes) {
    expect_right(within(files_plan(three), 0ms), three_in_no_time, 1000);
}
TEST(lock_files_in_every_order, continue_within_100_ms_after_a_kill_at_any_step) {
    expect_right(within(with_kills(files_plan(pair), 2), 100ms), killing_in_no_time, 1000);
}
TEST(lock_files_in_every_order, report_each_of_two_deaths) {
    limits twice = killing_in_no_time;
    twice.kills_max = 2;
    expect_right(with_kills(files_plan(same), 2), twice, 1000);
}
TEST(lock_files_in_every_order, survive_a_kill_while_they_are_opened) {
    expect_right(with_kills(opened_in_time(files_plan(same))), killing, 1000);
}
TEST(lock_files_in_every_order, meet_a_deadline_exactly) {
    expect_right(within(files_plan(others_deadline), 40ms), in_no_time, 500);
}
TEST(lock_files_in_every_order, are_not_confused_by_deadlines_that_pass_at_any_moment) {
    expect_right(files_plan(deadlines), {.deadlines = timers::as_preemptions}, 500);
}
TEST(lock_files_in_every_order, continue_after_a_record_did_not_fit) {
    plan crowded = files_plan(pair);
    crowded.has_room_for = 150;  // a record, and a part of another
    expect_right(crowded, {.deadlines = timers::as_preemptions}, 500);
    crowded.has_room_for = 50;  // less than one
    expect_right(crowded, {.deadlines = timers::as_preemptions}, 500);
}
TEST(lock_files_in_every_order, are_right_on_a_volume_that_hosts_share) {
    expect_right(on_a_shared_volume(with_kills(files_plan(same), 2)), killing, 500);
}
TEST(lock_files_in_every_order, are_not_acquired_after_their_names_were_removed_although_they_have_links) {
    const std::vector<std::vector<visit>> coming_back{{{.wanted = one}, {.wanted = one}},
                                                      {{.wanted = one, .stays = 1ms}}};
    expect_right(on_a_shared_volume(files_plan(coming_back)), in_no_time, 500);
}
TEST(lock_files_in_every_order, continue_waiting_after_signals) {
    expect_right(interrupted(files_plan(pair)), {.preemptions_max = 1}, 100);
}

// A process locks a new file between its creation and its locking by the creator, and is killed
// then: the creator must not take the file for new. The record in it is the proof, so if the
// creator does not check for a record, the death is lost.
TEST(lock_files_in_every_order, would_lose_a_death_if_the_creator_of_a_file_did_not_check_for_a_record) {
    plan blind = with_kills(files_plan(same), 2);
    blind.prepare = [](simulated_kernel& kernel) { kernel.hide_sizes(); };
    EXPECT_EQ(explore(blind, killing).problem, "the death of a holder was not reported");
}

TEST(byte_ranges_in_every_order, let_no_time_pass_if_no_process_dies) {
    expect_right(within(ranges_plan(pair), 0ms), in_no_time, 100);
}
TEST(byte_ranges_in_every_order, exclude_three_processes_and_let_readers_share) {
    expect_right(within(ranges_plan(three), 0ms), three_in_no_time, 100);
}
TEST(byte_ranges_in_every_order, let_no_time_pass_after_a_kill_at_any_step) {
    expect_right(within(with_kills(ranges_plan(pair), 2), 0ms), killing_in_no_time, 100);
}
TEST(byte_ranges_in_every_order, survive_a_kill_while_they_are_opened) {
    expect_right(with_kills(opened_in_time(ranges_plan(same))), killing, 100);
}
TEST(byte_ranges_in_every_order, meet_a_deadline_exactly) {
    expect_right(within(ranges_plan(others_deadline), 40ms), in_no_time, 100);
}
TEST(byte_ranges_in_every_order, are_not_confused_by_deadlines_that_pass_at_any_moment) {
    expect_right(ranges_plan(deadlines), {.deadlines = timers::as_preemptions}, 100);
}
TEST(byte_ranges_in_every_order, continue_on_a_volume_shared_by_hosts_without_wake_ups) {
    expect_right(within(on_a_shared_volume(ranges_plan(pair)), 100ms),
                 {.preemptions_max = 1, .deadlines = timers::when_all_sleep}, 50);
}
TEST(byte_ranges_in_every_order, continue_waiting_after_signals) {
    expect_right(interrupted(ranges_plan(pair)), {.preemptions_max = 1}, 100);
}

}  // namespace
}  // namespace sluice::interleave
