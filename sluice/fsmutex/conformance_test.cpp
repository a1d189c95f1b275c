// The contract of every algorithm, with real processes where they make a difference.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <vector>

#include "sluice/fsmutex/conformance_testing.hpp"
#include "sluice/fsmutex/process/processes_testing.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto shared = lock_mode::shared;

class every_mutex : public on_each_algorithm {
protected:
    // Returns a process that holds `wanted` until it is killed; it already holds them on return.
    [[nodiscard]] process holder(std::vector<entity> wanted) {
        shared_memory<std::atomic<bool>> holds;
        process made([&] {
            const auto mutex = open();
            const auto held = mutex->lock(wanted);
            if (not held) fail_child(held.error().operation());
            holds->store(true);
            for (;;)
                std::this_thread::sleep_for(1s);
        });
        EXPECT_TRUE(eventually([&] { return holds->load(); }));
        return made;
    }
};

TEST_P(every_mutex, excludes_others_until_the_guard_is_destroyed) {
    const auto one = open();
    const auto other = open();
    {
        const auto held = one->lock(entity(1));
        ASSERT_TRUE(held) << held.error().message();
        EXPECT_TRUE(*held);
        EXPECT_FALSE(held->owner_died());
        EXPECT_EQ(other->try_lock(entity(1)).error(), std::errc::timed_out);
        EXPECT_TRUE(other->try_lock(entity(2)));
    }
    EXPECT_TRUE(other->try_lock(entity(1)));
}

TEST_P(every_mutex, excludes_requests_of_one_object_from_each_other) {
    const auto mutex = open();
    const auto held = mutex->lock(entity(1)).value();
    EXPECT_EQ(mutex->try_lock(entity(1)).error(), std::errc::timed_out);
    EXPECT_TRUE(mutex->try_lock(entity(2)));
}

TEST_P(every_mutex, lets_readers_share_and_excludes_others_for_a_writer) {
    const auto one = open();
    const auto other = open();
    if (not one->has_shared_mode()) return;
    auto reading = one->lock(entity(1, shared)).value();
    auto reading_too = one->try_lock(entity(1, shared)).value();
    auto elsewhere = other->try_lock(entity(1, shared)).value();
    EXPECT_FALSE(other->try_lock(entity(1)));
    reading.unlock();
    elsewhere.unlock();
    EXPECT_FALSE(other->try_lock(entity(1))) << "one reader is left";
    reading_too.unlock();
    EXPECT_TRUE(other->try_lock(entity(1)));
}

TEST_P(every_mutex, takes_repeated_entities_in_mixed_modes_as_the_stronger_one) {
    const auto one = open();
    const auto other = open();
    const std::vector wanted{entity(4, shared), entity(4), entity(4, shared), entity(4)};
    auto held = one->lock(wanted).value();
    EXPECT_FALSE(other->try_lock(entity(4, shared)));
    held.unlock();
    EXPECT_TRUE(other->try_lock(entity(4)));
}

TEST_P(every_mutex, locks_any_number_of_entities_at_once_or_none_of_them) {
    const auto one = open();
    const auto other = open();
    std::vector<entity> many;
    for (std::uint64_t i = 0; i != 100; ++i)
        many.emplace_back(i * 0x0123'4567'89ab'cdef);
    {
        const auto conflicting = other->lock(many[50]).value();
        EXPECT_EQ(one->try_lock(many).error(), std::errc::timed_out);
        EXPECT_TRUE(other->try_lock(many[0])) << "a request refused holds nothing";
    }
    auto held = one->lock(many).value();
    for (const entity each : many)
        EXPECT_FALSE(other->try_lock(each)) << each.number();
    held.unlock();
    EXPECT_TRUE(other->try_lock(many));
}

TEST_P(every_mutex, distinguishes_the_largest_entity_from_the_others) {
    const auto one = open();
    const auto other = open();
    const auto held = one->lock(entity(~std::uint64_t{0})).value();
    EXPECT_FALSE(other->try_lock(entity(~std::uint64_t{0})));
    EXPECT_TRUE(other->try_lock(entity(~std::uint64_t{1})));
    EXPECT_TRUE(other->try_lock(entity(0)));
}

TEST_P(every_mutex, refuses_a_request_for_nothing) {
    EXPECT_EQ(open()->lock(std::span<const entity>{}).error(), std::errc::invalid_argument);
    EXPECT_EQ(open()->try_lock(std::span<const entity>{}).error(), std::errc::invalid_argument);
}

TEST_P(every_mutex, honours_a_deadline_of_either_clock_and_then_holds_nothing) {
    const auto one = open();
    const auto other = open();
    const auto held = one->lock(entity(1)).value();
    const std::vector wanted{entity(0), entity(1), entity(2)};
    for (const deadline within : {deadline(30ms), deadline(steady::now() + 60ms),
                                  deadline(std::chrono::system_clock::now() + 90ms)}) {
        EXPECT_EQ(other->lock(wanted, within).error(), std::errc::timed_out);
        EXPECT_TRUE(one->try_lock(entity(0)));
        EXPECT_TRUE(one->try_lock(entity(2)));
    }
    const auto began = steady::now();
    EXPECT_EQ(other->lock(wanted, 50ms).error(), std::errc::timed_out);
    EXPECT_GE(steady::now() - began, 50ms);
    EXPECT_LT(steady::now() - began, 5s);  // 10 ms on a machine that is not busy
    EXPECT_EQ(other->lock(wanted, std::chrono::system_clock::now() - 1s).error(), std::errc::timed_out);
}

TEST_P(every_mutex, grants_a_wait_whose_deadline_is_far) {
    const auto mutex = open();
    auto held = mutex->lock(entity(1)).value();
    std::jthread waiter([&] { EXPECT_TRUE(mutex->lock(entity(1), 60s)); });
    std::this_thread::sleep_for(20ms);
    held.unlock();
}

TEST_P(every_mutex, is_for_many_threads_of_one_object) {
    const auto mutex = open();
    std::uint64_t counter = 0;  // TSan detects whether the lock orders the accesses
    std::atomic<int> inside{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i != 4; ++i)
            threads.emplace_back([&, i] {
                const std::vector wanted{entity(1), entity(10 + i % 2, shared), entity(20 + i)};
                for (int round = 0; round != 200; ++round) {
                    const auto held = mutex->lock(wanted);
                    ASSERT_TRUE(held) << held.error().message();
                    EXPECT_EQ(inside.fetch_add(1), 0);
                    ++counter;
                    inside.fetch_sub(1);
                }
            });
    }
    EXPECT_EQ(counter, 800);
}

TEST_P(every_mutex, excludes_processes_that_each_opened_it_themselves) {
    constexpr int processes = 4;
    constexpr int rounds = 200;
    struct world {
        std::atomic<int> inside;
        std::uint64_t counter;
    };
    const shared_memory<world> all;
    std::vector<process> workers;
    for (int i = 0; i != processes; ++i)
        workers.emplace_back([&] {
            const auto mutex = open();
            for (int round = 0; round != rounds; ++round) {
                const auto held = mutex->lock(std::vector{entity(1), entity(2 + round % 3)});
                if (not held) fail_child(held.error().operation());
                if (all->inside.fetch_add(1) != 0) fail_child("two hold one entity");
                all->counter = all->counter + 1;
                all->inside.fetch_sub(1);
            }
        });
    for (process& each : workers)
        EXPECT_TRUE(each.join());
    EXPECT_EQ(all->counter, processes * rounds);
}

TEST_P(every_mutex, is_released_by_a_holder_that_is_killed) {
    const auto mutex = open();
    process other = holder({entity(1), entity(2, shared)});
    EXPECT_FALSE(mutex->try_lock(entity(1)));
    std::jthread killer([&] {
        std::this_thread::sleep_for(20ms);
        other.stop();
    });
    auto held = mutex->lock(std::vector{entity(1), entity(2)}, 20s);
    ASSERT_TRUE(held) << held.error().message();
    EXPECT_EQ(held->owner_died(), tested().reports_deaths);
    held->unlock();
    EXPECT_FALSE(mutex->try_lock(entity(1)).value().owner_died()) << "it was repaired";
}

TEST_P(every_mutex, is_not_released_by_a_holder_that_is_stopped) {
    const auto mutex = open();
    const process other = holder({entity(1)});
    other.send(SIGSTOP);
    EXPECT_EQ(mutex->lock(entity(1), 200ms).error(), std::errc::timed_out);
    EXPECT_TRUE(mutex->try_lock(entity(2)));
    other.send(SIGCONT);
    EXPECT_EQ(mutex->try_lock(entity(1)).error(), std::errc::timed_out);
}

// Per second: CPU time is counted in steps of 10 ms, and a busy machine or a sanitizer makes a poll
// more expensive. A process that polls all the time uses all of it.
constexpr auto asleep_ms_max = 200ms;

TEST_P(every_mutex, lets_a_waiter_sleep) {
    const auto mutex = open();
    const auto held = mutex->lock(entity(1)).value();
    process waiter([&] { (void)open()->lock(entity(1)); });
    std::this_thread::sleep_for(100ms);
    const auto before = processor_time_of(waiter.id());
    std::this_thread::sleep_for(1s);
    EXPECT_LE(processor_time_of(waiter.id()) - before, asleep_ms_max) << "within one second";
}

TEST_P(every_mutex, also_lets_a_waiter_with_a_deadline_sleep) {
    const auto mutex = open();
    const auto held = mutex->lock(entity(1)).value();
    process waiter([&] { (void)open()->lock(entity(1), 60s); });
    std::this_thread::sleep_for(100ms);
    const auto before = processor_time_of(waiter.id());
    std::this_thread::sleep_for(1s);
    EXPECT_LE(processor_time_of(waiter.id()) - before, asleep_ms_max) << "within one second";
}

TEST_P(every_mutex, continues_to_wait_after_an_interrupting_signal) {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    struct sigaction before{};
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
    const auto mutex = open();
    auto held = mutex->lock(entity(1)).value();
    process waiter([&] {
        if (not open()->lock(entity(1))) fail_child("an interruption ended the wait");
    });
    for (int i = 0; i != 20; ++i) {
        std::this_thread::sleep_for(2ms);
        waiter.send(SIGUSR1);
    }
    held.unlock();
    EXPECT_TRUE(waiter.join());
    ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(every_mutex, grants_in_the_order_of_requests_if_it_is_fair) {
    if (not open()->is_fair()) return;
    const auto mutex = open();
    const shared_memory<std::atomic<int>> grants;
    auto held = mutex->lock(std::vector{entity(1), entity(2)}).value();
    std::vector<process> waiters;
    for (int i = 0; i != 5; ++i) {
        waiters.emplace_back([&, i] {
            const auto own = open();
            const auto granted = own->lock(std::vector{entity(1), entity(2 + i)});
            if (not granted) fail_child(granted.error().operation());
            if (grants->fetch_add(1) != i) fail_child("granted out of order");
        });
        // Once it is listed, it is in the queue.
        ASSERT_TRUE(eventually([&] { return mutex->list().value().size() == waiters.size() + 1; }));
    }
    EXPECT_FALSE(mutex->try_lock(entity(6))) << "an earlier request waits for it";
    held.unlock();
    for (process& each : waiters)
        EXPECT_TRUE(each.join());
}

TEST_P(every_mutex, lists_holders_waiters_and_dead_requests) {
    const auto mutex = open();
    const auto nobody = mutex->list();
    if (not nobody and nobody.error() == std::errc::operation_not_supported) return;
    EXPECT_TRUE(nobody.value().empty());
    const auto before = std::chrono::system_clock::now() - 1s;  // the kernel's ticks are coarser
    const std::vector wanted{entity(1), entity(2)};
    const auto held = mutex->lock(mutex->has_shared_mode() ? wanted : std::vector{entity(1)}).value();
    process dead = holder({entity(7)});
    const auto of_dead = static_cast<std::uint32_t>(dead.id());
    dead.stop();
    process waiter([&] { (void)open()->lock(std::vector{entity(2), entity(1)}); });
    using state = listed_request::state;
    std::vector<listed_request> seen;
    const std::size_t expected = mutex->has_shared_mode() ? 3 : 2;  // files do not list waiters
    ASSERT_TRUE(eventually([&] {
        seen = mutex->list().value();
        return seen.size() >= expected;
    }));
    ASSERT_EQ(seen.size(), expected);
    std::sort(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.what < b.what; });
    EXPECT_EQ(seen.front().what, state::holds);
    EXPECT_EQ(seen.front().process_id, static_cast<std::uint32_t>(::getpid()));
    EXPECT_FALSE(seen.front().host.empty());
    EXPECT_GE(seen.front().since, before);
    EXPECT_LE(seen.front().since, std::chrono::system_clock::now() + 1s);
    EXPECT_EQ(seen.back().what, state::died);
    EXPECT_EQ(seen.back().entities, std::vector{entity(7)});
    if (tested().name != "memory_map") EXPECT_EQ(seen.back().process_id, of_dead);
    if (not mutex->has_shared_mode()) return;
    EXPECT_EQ(seen.front().entities, wanted);
    EXPECT_EQ(seen[1].what, state::waits);
    EXPECT_EQ(seen[1].process_id, static_cast<std::uint32_t>(waiter.id()));
    EXPECT_EQ(seen[1].entities, wanted);
}

TEST_P(every_mutex, leaves_no_file_that_its_users_can_remove) {
    {
        const auto mutex = open();
        const auto held = mutex->lock(entity(1)).value();
        const auto other = open();
    }
    if (not tested().leaves_its_file) EXPECT_EQ(directory.entry_count(), 0);
}

// Another process opens the file between the last user's unlock and removal, or in the other order:
// at every moment both have the same file, or one has none.
TEST_P(every_mutex, is_the_same_for_all_while_it_is_constantly_opened_and_closed) {
    EXPECT_TRUE(excludes_while_it_comes_and_goes([&] { return open(); }, 1s));
    if (tested().leaves_its_file) return;
    // A server removes an open file only after it was closed, and clients cache names for 30 s.
    EXPECT_TRUE(eventually([&] { return directory.entry_count() == 0; }, 40s));
}

class every_fork : public on_each_algorithm {
protected:
    // Returns whether it is locked for a process that opens the mutex itself.
    [[nodiscard]] bool is_locked(entity what) const { return not open()->try_lock(what); }
};

TEST_P(every_fork, leaves_a_mutex_to_the_child_that_refuses_every_operation) {
    const auto mutex = open();
    process child([&] {
        const auto refused = std::errc::state_not_recoverable;
        if (mutex->lock(entity(1)).error() != refused) fail_child("the child locked");
        if (mutex->lock(entity(1), 1s).error() != refused) fail_child("the child locked with a deadline");
        if (mutex->try_lock(entity(1)).error() != refused) fail_child("the child tried to lock");
        const auto listed = mutex->list();
        const bool can_list = tested().name != "byte_ranges";
        if (can_list and (listed or listed.error() != refused)) fail_child("the child listed the holders");
    });
    EXPECT_TRUE(child.join());
    EXPECT_TRUE(mutex->try_lock(entity(1)));
}

TEST_P(every_fork, keeps_the_lock_of_the_parent_when_the_child_unlocks_and_destroys_its_copies) {
    auto mutex = open();
    auto idle = mutex->lock(entity(2)).value();
    idle.unlock();  // its description stays open for the next request
    auto held = mutex->lock(std::vector{entity(1), entity(3)}).value();
    process child([&] {
        auto moved = std::move(held);
        moved.unlock();
        if (moved) fail_child("the guard still claims to hold");
        mutex.reset();
        if (not is_locked(entity(1))) fail_child("the child released the lock of its parent");
    });
    EXPECT_TRUE(child.join());
    EXPECT_TRUE(is_locked(entity(1)));
    EXPECT_TRUE(is_locked(entity(3)));
    EXPECT_EQ(directory.entry_count(), 1);
    held.unlock();
    EXPECT_FALSE(is_locked(entity(1)));
    EXPECT_TRUE(mutex->try_lock(entity(1))) << "the parent's mutex works as before";
}

TEST_P(every_fork, keeps_the_mutex_of_the_parent_when_the_child_that_is_its_only_other_user_destroys_it) {
    auto mutex = open();
    process child([&] { mutex.reset(); });
    EXPECT_TRUE(child.join());
    EXPECT_EQ(directory.entry_count(), 1) << "the child removed the file";
    const auto held = mutex->lock(entity(1)).value();
    EXPECT_TRUE(is_locked(entity(1))) << "others use another file";
}

TEST_P(every_fork, lets_parent_and_child_exclude_each_other_once_the_child_has_opened_it) {
    const auto mutex = open();
    const auto held = mutex->lock(entity(1)).value();
    const shared_memory<std::atomic<bool>> child_holds;
    process child([&] {
        const auto own = open();
        if (own->try_lock(entity(1))) fail_child("the child holds the entity of its parent");
        const auto held_by_child = own->lock(entity(2));
        child_holds->store(true);
        std::this_thread::sleep_for(1h);
    });
    ASSERT_TRUE(eventually([&] { return child_holds->load(); }));
    EXPECT_FALSE(mutex->try_lock(entity(2)));
}

TEST_P(every_fork, releases_the_lock_when_the_parent_unlocks_though_the_child_lives) {
    auto mutex = open();
    auto held = mutex->lock(entity(1)).value();
    const process child([] { std::this_thread::sleep_for(1h); });
    held.unlock();
    EXPECT_FALSE(is_locked(entity(1)));
    mutex.reset();
    if (not tested().leaves_its_file) EXPECT_EQ(directory.entry_count(), 0);
    auto next = open();
    EXPECT_TRUE(next->try_lock(entity(1)));
    next.reset();
    if (not tested().leaves_its_file) EXPECT_EQ(directory.entry_count(), 0);
}

TEST_P(every_fork, releases_the_lock_of_a_dead_parent_whose_child_has_destroyed_its_copies) {
    const auto mutex = open();
    const shared_memory<std::atomic<pid_t>> grandchild;
    process parent([&] {
        auto own = open();
        auto held = own->lock(entity(1)).value();
        const pid_t id = ::fork();
        if (id == 0) {
            held.unlock();
            own.reset();
            grandchild->store(::getpid());
        }
        std::this_thread::sleep_for(1h);
    });
    ASSERT_TRUE(eventually([&] { return grandchild->load() != 0; }));
    EXPECT_FALSE(mutex->try_lock(entity(1)));
    parent.stop();
    const auto held = mutex->lock(entity(1), 20s);
    ::kill(grandchild->load(), SIGKILL);
    ASSERT_TRUE(held) << held.error().message();
    EXPECT_EQ(held->owner_died(), tested().reports_deaths);
}

SLUICE_ON_EACH_ALGORITHM(every_mutex);
SLUICE_ON_EACH_ALGORITHM(every_fork);

}  // namespace
}  // namespace sluice::fsmutex
