#include "tests/interleave/scheduler.hpp"

#include <gtest/gtest.h>

#include "sluice/sync/small_mutex.hpp"

namespace sluice::interleave {
namespace {

using word = scheduled_atomics::atomic<std::uint32_t>;
constexpr auto any_order = std::memory_order_seq_cst;

// Two threads that increment the same number, protected or not by the lock under test.
template <class Lock>
class two_additions final : public scenario {
public:
    std::vector<std::function<void()>> threads() override {
        const auto add = [this] {
            lock_.lock();
            const std::uint32_t before = number_.load(std::memory_order_relaxed);
            number_.store(before + 1, std::memory_order_relaxed);
            lock_.unlock();
        };
        return {add, add};
    }
    std::string verdict() override {
        return number_.load(std::memory_order_relaxed) == 2 ? "" : "an addition was lost";
    }

private:
    Lock lock_;
    word number_{0};
};

struct no_lock {
    void lock() noexcept {}
    void unlock() noexcept {}
};

// Checks first and locks afterwards: two threads can have checked.
struct hasty_lock {
    void lock() noexcept {
        while (held.load(any_order) != 0)
            give_way();
        held.store(1, any_order);
    }
    void unlock() noexcept { held.store(0, any_order); }
    word held{0};
};

// Sleeps without recording that a thread must be woken.
struct silent_lock {
    void lock() noexcept {
        while (held.exchange(1, any_order) != 0)
            scheduled_atomics::wait(held, 1, std::chrono::steady_clock::time_point::max());
    }
    void unlock() noexcept { held.store(0, any_order); }
    word held{0};
};

template <class Scenario>
report try_all(const limits& within = {}) {
    return explore([] { return std::make_unique<Scenario>(); }, within);
}

TEST(scheduler, finds_the_addition_that_a_missing_lock_loses) {
    const report found = try_all<two_additions<no_lock>>();
    EXPECT_EQ(found.problem, "an addition was lost");
    EXPECT_FALSE(found.schedule.empty());
}

TEST(scheduler, finds_nothing_wrong_with_one_thread_after_the_other) {
    const report found = try_all<two_additions<no_lock>>({.preemptions_max = 0});
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_EQ(found.schedules, 2U);
}

TEST(scheduler, finds_the_lock_that_checks_before_it_locks) {
    EXPECT_EQ(try_all<two_additions<hasty_lock>>().problem, "an addition was lost");
}

TEST(scheduler, finds_the_thread_that_is_never_woken) {
    EXPECT_EQ(try_all<two_additions<silent_lock>>().problem,
              "a thread sleeps and no thread is left to wake it");
}

TEST(small_mutex, excludes_threads_and_wakes_them_in_every_schedule) {
    const report found =
        try_all<two_additions<sync::basic_small_mutex<scheduled_atomics>>>({.preemptions_max = 4});
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 50U);
}

TEST(small_mutex, excludes_threads_with_delayed_stores) {
    const report found =
        try_all<two_additions<sync::basic_small_mutex<scheduled_atomics>>>({.delays_stores = true});
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
}

}  // namespace
}  // namespace sluice::interleave
