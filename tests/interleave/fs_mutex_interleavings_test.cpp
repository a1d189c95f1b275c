// The queues of fsmutex, as they are shipped, in every order of the steps of two or three processes
// (within the given limits), with a kill at every step.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sluice/fsmutex/atomic_append.hpp"
#include "sluice/fsmutex/memory_map.hpp"
#include "sluice/fsmutex/queue/mapped_queue.hpp"
#include "sluice/fsmutex/queue/queue_format.hpp"
#include "tests/interleave/fs_mutex_plans.hpp"

namespace sluice::interleave {
namespace {

using fsmutex::entity;
using opened = std::unique_ptr<fsmutex::shared_fs_mutex>;

// Returns null on failure, which the scenario reports.
opened open_append(const fsmutex::dependencies& from) {
    auto made = fsmutex::atomic_append::open({}, "/simulated/queue", from);
    return made ? std::move(*made) : nullptr;
}
opened open_map(const fsmutex::dependencies& from) {
    auto made = fsmutex::memory_map::open({}, "/simulated/map", from);
    return made ? std::move(*made) : nullptr;
}

constexpr std::uint32_t first_process_id = 5000;

bool has_slot(const std::byte* file, std::size_t bytes, unsigned process) {
    using namespace fsmutex::queue_format;
    for (std::size_t at = page_bytes; at + slot_bytes <= bytes; at += slot_bytes) {
        const slot each = decode_slot({file + at, slot_bytes});
        if (each.kind == slot_kind::head and each.process_id == first_process_id + process) return true;
    }
    return false;
}
bool has_request(const std::byte* file, std::size_t, unsigned process) {
    const auto& all = *reinterpret_cast<const fsmutex::mapped::memory*>(file);
    for (std::uint32_t i = 0; i != all.records_used; ++i) {
        const auto& each = all.requests[i];
        if (each.state.load(std::memory_order_relaxed) != fsmutex::mapped::unused and
            all.instances[each.instance].process_id == first_process_id + process)
            return true;
    }
    return false;
}

plan append_plan(std::vector<std::vector<visit>> processes) {
    return {.open = open_append, .is_in_order = has_slot, .processes = std::move(processes)};
}
plan map_plan(std::vector<std::vector<visit>> processes) {
    return {.open = open_map, .is_in_order = has_request, .processes = std::move(processes)};
}

// Prepares a queue with one slot more than a page has, so that the following slots cross its end,
// and are cleaned up.
plan at_the_end_of_a_page(plan of) {
    of.prepare = [](simulated_kernel& kernel) {
        kernel.as(4, [&] {
            auto mutex = open_append({.clock = &kernel.clock(), .random = &kernel.random(4)});
            for (int i = 0; i != 31; ++i)
                (void)mutex->lock(entity(9));
            (void)mutex.release();
        });
        kernel.kill(4);  // before it can remove the file
    };
    auto before = std::make_shared<std::uint64_t>(0);
    of.inspect = [before](const std::byte* file, std::size_t) -> const char* {
        const auto header = fsmutex::queue_format::decode_header({file, fsmutex::queue_format::page_bytes});
        if (not header) return nullptr;  // it is being written
        return header->first_known_good >= std::exchange(*before, header->first_known_good)
                   ? nullptr
                   : "the header moves backwards";
    };
    of.prepare = [before, prepare = of.prepare](simulated_kernel& kernel) {
        *before = 0;
        prepare(kernel);
    };
    return of;
}

// Prepares a ring of one page in which only the first slots and the last are free: each request
// begins another round, in the bytes of a slot that others may still be reading. The rest belong to
// dead processes, and do not conflict.
plan in_a_narrow_ring(plan of, std::size_t free_slots,
                      const std::vector<entity>& of_first_dead = {entity(9)}) {
    using namespace fsmutex::queue_format;
    of.prepare = [free_slots, of_first_dead](simulated_kernel& kernel) {
        std::array<std::byte, 2 * page_bytes> file{};
        const auto page = std::span(file).first<page_bytes>();
        std::array<std::byte, page_bytes> first{};
        encode({.ring_pages = 1}, first);
        std::ranges::copy(first, page.begin());
        const le64 end(page_bytes + (slots_per_page - 1) * slot_bytes);
        std::memcpy(file.data() + ring_end_offset, &end, sizeof end);
        for (std::size_t i = free_slots - 1; i != slots_per_page - 1; ++i) {
            const std::uint64_t place = page_bytes + i * slot_bytes;
            const auto held = i == free_slots - 1 ? of_first_dead : std::vector{entity(9)};
            slot dead{.kind = slot_kind::head,
                      .count = static_cast<std::uint8_t>(held.size()),
                      .place = place,
                      .id = i << 8};
            std::ranges::copy(held, dead.all.begin());
            encode(dead, std::span<std::byte, slot_bytes>(file.data() + place, slot_bytes));
        }
        kernel.as(4, [&] {
            const int made = ::open("/simulated/queue", O_RDWR | O_CREAT, 0600);
            (void)!::pwrite(made, file.data(), file.size(), 0);
            ::close(made);
        });
    };
    of.inspect = [](const std::byte*, std::size_t bytes) {
        return bytes == 2 * page_bytes ? nullptr : "the file has grown";
    };
    of.leaves_files = 1;  // the file of the dead processes
    return of;
}

TEST(queue_file_in_every_order, lets_no_time_pass_if_no_process_dies) {
    // Three: a process is preempted with a slot half erased, others run that see this, and it
    // continues.
    limits three_times = in_no_time;
    three_times.preemptions_max = 3;
    expect_right(within(append_plan(pair), 0ms), three_times, 10'000);
}
TEST(queue_file_in_every_order, lets_no_time_pass_if_a_waiter_requests_again) {
    expect_right(within(append_plan({{{.wanted = one}, {.wanted = one}}, {{.wanted = two}}}), 0ms),
                 in_no_time, 3000);
}
TEST(queue_file_in_every_order, is_fair_to_three_processes) {
    expect_right(within(append_plan(three), 0ms), {.preemptions_max = 1, .deadlines = timers::when_all_sleep},
                 3000);
}
TEST(queue_file_in_every_order, continues_within_100_ms_after_a_kill_at_any_step) {
    expect_right(within(with_kills(append_plan(pair), 2), 100ms), killing_in_no_time, 3000);
}
TEST(queue_file_in_every_order, survives_a_kill_while_it_is_opened_and_closed) {
    expect_right(with_kills(opened_in_time(append_plan({{{.wanted = one}}, {{.wanted = one}}}))), killing,
                 3000);
}
TEST(queue_file_in_every_order, survives_a_kill_between_pages_and_during_clean_up) {
    expect_right(with_kills(at_the_end_of_a_page(append_plan({{{.wanted = many(12)}}, {{.wanted = two}}}))),
                 killing, 1000);
}
TEST(queue_file_in_every_order, meets_a_deadline_exactly) {
    expect_right(within(append_plan({{{.wanted = one, .stays = 30ms}},
                                     {{.wanted = two, .within = 10ms}, {.wanted = two, .tries = true}}}),
                        40ms),
                 in_no_time, 500);
}
TEST(queue_file_in_every_order, is_not_confused_by_deadlines_that_pass_at_any_moment) {
    expect_right(append_plan({{{.wanted = one, .within = 1ms}}, {{.wanted = two, .within = 1ms}}}),
                 {.deadlines = timers::as_preemptions}, 1000);
}
TEST(queue_file_in_every_order, is_right_on_a_volume_that_hosts_share) {
    expect_right(on_a_shared_volume(with_kills(append_plan({{{.wanted = one}}, {{.wanted = one}}}))), killing,
                 1000);
}
TEST(queue_file_in_every_order, is_removed_and_created_again_on_a_volume_that_hosts_share) {
    // The first process only opens it and ends: then it is a file without a name, but with a link,
    // that the second has open.
    const plan coming_and_going =
        opened_in_time(append_plan({{}, {{.wanted = one, .stays = 1ms}}, {{.wanted = one, .stays = 1ms}}}));
    expect_right(on_a_shared_volume(coming_and_going),
                 {.preemptions_max = 1, .deadlines = timers::when_all_sleep}, 300);
}
TEST(queue_file_in_every_order, lets_no_time_pass_in_a_ring) {
    expect_right(in_a_narrow_ring(
                     within(append_plan({{{.wanted = one}, {.wanted = one}}, {{.wanted = two}}}), 0ms), 2),
                 {.preemptions_max = 1, .deadlines = timers::when_all_sleep}, 300);
}
TEST(queue_file_in_every_order, survives_a_kill_at_any_step_in_a_ring) {
    expect_right(
        in_a_narrow_ring(
            within(with_kills(append_plan({{{.wanted = two}}, {{.wanted = one}, {.wanted = one}}})), 100ms),
            2),
        killing_in_no_time, 1000);
}
TEST(queue_file_in_every_order, survives_a_kill_of_one_of_three_in_a_ring) {
    expect_right(in_a_narrow_ring(with_kills(append_plan({{{.wanted = two, .stays = 1ms}},
                                                          {{.wanted = one}, {.wanted = one}},
                                                          {{.wanted = {entity(2)}}}})),
                                  3),
                 {.preemptions_max = 0, .kills_max = 1, .deadlines = timers::when_all_sleep}, 100);
}
// A process that only had to wait for a dead reader has read the reader's slot and is about to
// change it. At that moment the process that repairs the entities of the dead exclusive holder
// frees the slot and makes a new request in the same bytes.
TEST(queue_file_in_every_order, changes_no_slot_of_a_dead_process_that_has_a_new_owner) {
    const std::vector<entity> other{entity(2)};
    // With a deadline it requests again at once, without a yield.
    const std::vector<visit> repairs_and_comes_again{{.wanted = other},
                                                     {.wanted = other, .within = 100ms, .stays = 1ms}};
    plan repairing =
        in_a_narrow_ring(append_plan({{{.wanted = one}, {.wanted = other}}, repairs_and_comes_again}), 2,
                         {entity(1, lock_mode::shared), entity(2)});
    repairing.deaths_before = 1;
    expect_right(repairing, {.preemptions_max = 1, .deadlines = timers::when_all_sleep}, 300);
}
TEST(queue_file_in_every_order, continues_after_a_full_ring) {
    plan crowded = in_a_narrow_ring(append_plan({{{.wanted = one}}, {{.wanted = two}}}), 1);
    crowded.has_room_for = 1 << 20;  // room on the disk; the ring has room for one request
    expect_right(crowded, {.preemptions_max = 1, .deadlines = timers::as_preemptions}, 100);
}
TEST(queue_file_in_every_order, continues_after_a_request_did_not_fit) {
    plan crowded = append_plan({{{.wanted = one}}, {{.wanted = two}}});
    crowded.has_room_for = 4096 + 128 + 50;  // the header, a slot, and a part of another
    expect_right(crowded, {.preemptions_max = 1, .deadlines = timers::as_preemptions}, 100);
}
TEST(queue_file_in_every_order, continues_waiting_after_signals) {
    expect_right(interrupted(append_plan(pair)), {.preemptions_max = 1}, 100);
}

TEST(mapped_mutex_in_every_order, lets_no_time_pass_if_no_process_dies) {
    expect_right(within(map_plan(pair), 0ms), in_no_time, 2000);
}
TEST(mapped_mutex_in_every_order, lets_no_time_pass_between_processors) {
    plan apart = within(map_plan(pair), 0ms);
    apart.prepare = [](simulated_kernel& kernel) { kernel.give_processors(2); };
    expect_right(apart, in_no_time, 2000);
}
TEST(mapped_mutex_in_every_order, is_fair_to_three_processes) {
    expect_right(within(map_plan(three), 0ms), {.preemptions_max = 1, .deadlines = timers::when_all_sleep},
                 3000);
}
TEST(mapped_mutex_in_every_order, continues_within_100_ms_after_a_kill_at_any_step) {
    expect_right(within(with_kills(map_plan(pair)), 100ms), killing_in_no_time, 3000);
}
TEST(mapped_mutex_in_every_order, survives_a_kill_while_it_is_opened_and_closed) {
    expect_right(with_kills(opened_in_time(map_plan({{{.wanted = one}}, {{.wanted = one}}}))),
                 {.preemptions_max = 0, .kills_max = 1, .deadlines = timers::as_preemptions}, 100);
    expect_right(opened_in_time(map_plan({{{.wanted = one}}, {{.wanted = one}}})),
                 {.preemptions_max = 1, .deadlines = timers::as_preemptions}, 100);
}
TEST(mapped_mutex_in_every_order, survives_a_kill_in_a_request_of_two_records) {
    expect_right(with_kills(map_plan({{{.wanted = many(9)}}, {{.wanted = two}}})),
                 {.preemptions_max = 0, .kills_max = 1, .deadlines = timers::as_preemptions}, 100);
}
TEST(mapped_mutex_in_every_order, meets_a_deadline_exactly) {
    expect_right(within(map_plan({{{.wanted = one, .stays = 30ms}},
                                  {{.wanted = two, .within = 10ms}, {.wanted = two, .tries = true}}}),
                        40ms),
                 in_no_time, 500);
}
TEST(mapped_mutex_in_every_order, is_not_confused_by_deadlines_that_pass_at_any_moment) {
    expect_right(map_plan({{{.wanted = one, .within = 1ms}}, {{.wanted = two, .within = 1ms}}}),
                 {.deadlines = timers::as_preemptions}, 1000);
}
// A word of the file changes at any step. Each process ends in time, by a grant or by the error for
// a damaged file.
TEST(mapped_mutex_in_every_order, ends_all_waits_in_time_whatever_word_is_forged_at_any_step) {
    using namespace fsmutex::mapped;
    constexpr std::uint64_t of_request = sizeof(request);
    constexpr std::uint64_t first = offsetof(memory, requests);
    constexpr std::uint64_t first_link = first + offsetof(request, links);
    const std::vector<forgery> forgeries{
        {offsetof(memory, is_damaged), 1},
        {offsetof(memory, latch), 0x7ff},
        {offsetof(memory, free_record), 0xffff'ffff},
        {offsetof(memory, records_used), 0},
        {first + offsetof(request, state), unused},
        {first + of_request + offsetof(request, state), 77},
        {first + of_request + offsetof(request, state), abandoned},
        {first + offsetof(request, next_record), 1},
        {first + offsetof(request, next_record), 2},
        {first + of_request + offsetof(request, blocked), 0},
        {first_link + offsetof(link, next), 0},
        {first_link + offsetof(link, next), 1},
        {first_link + of_request + offsetof(link, next), 9},
        {first_link + of_request + offsetof(link, previous), 0xffff'ffff},
        {first_link + offsetof(link, bits), 5},
    };
    for (const forgery& each : forgeries) {
        SCOPED_TRACE(testing::Message() << each.offset << ' ' << each.word);
        plan attacked =
            within(map_plan({{{.wanted = one}}, {{.wanted = one}}, {{.wanted = {}, .forges = each}}}), 200ms);
        attacked.is_attacked = true;
        expect_right(attacked, {.preemptions_max = 1, .deadlines = timers::when_all_sleep}, 100);
    }
}

TEST(mapped_memory, accesses_are_observed) {
    for (const plan& each : {append_plan(pair), map_plan(pair)}) {
        const std::uint64_t before = accesses_seen();
        (void)explore(each, {.preemptions_max = 1, .schedules_max = 100});
        EXPECT_GT(accesses_seen(), before) << "its accesses were compiled without hooks";
    }
}

// Returns the number of system calls of a lock and unlock without conflicts.
std::uint64_t calls_of_a_visit(const plan::open_function& open, const std::vector<entity>& wanted) {
    simulated_kernel kernel;
    std::uint64_t calls = 0;
    kernel.as(0, [&] {
        const opened mutex = open({.clock = &kernel.clock(), .random = &kernel.random(0)});
        ASSERT_NE(mutex, nullptr);
        constexpr unsigned visits = 5;
        for (unsigned i = 0; i != 1 + visits; ++i) {
            if (i == 1)
                calls = kernel.calls();  // the first visit also reads the file for the
                                         // first time
            auto held = mutex->lock(wanted);
            ASSERT_TRUE(held);
            (void)held->unlock();
        }
        const std::uint64_t of_all = kernel.calls() - calls;
        EXPECT_EQ(of_all % visits, 0U);
        calls = of_all / visits;
    });
    return calls;
}

TEST(system_calls_of_a_lock_that_is_free, are_as_many_as_promised) {
    const std::vector<entity> eight{entity(1), entity(2), entity(3), entity(4),
                                    entity(5), entity(6), entity(7), entity(8)};
    EXPECT_EQ(calls_of_a_visit(open_append, one), 4U);
    EXPECT_EQ(calls_of_a_visit(open_append, eight), 4U) << "independent of the number of entities";
    EXPECT_EQ(calls_of_a_visit(open_map, one), 0U);
    EXPECT_EQ(calls_of_a_visit(open_map, eight), 0U);
}

}  // namespace
}  // namespace sluice::interleave
