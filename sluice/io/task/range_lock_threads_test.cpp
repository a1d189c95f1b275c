// Range locks that tasks and receivers wait for on a multiplexer that several threads run. Runs
// under ThreadSanitizer.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "sluice/io/loop/several_threads_testing.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/task/range_lock_sender.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/io/task/with_deadline.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using sync::range_guard;
using sync::range_lock;
using test_kit::run_threads;

const sync::lock_args whole{.where = sync::byte_range::whole()};

class range_locks_by_threads : public test_kit::several_threads {
protected:
    range_lock lock;
};
SLUICE_FOR_SEVERAL_THREADS(range_locks_by_threads);

struct counts {
    int inside = 0;  // not atomic: the lock protects it
    std::atomic<int> wrong = 0;
    std::atomic<int> granted = 0;
    std::atomic<int> ended = 0;
};

task<result<void>> hold(io_multiplexer& on, range_lock& lock, int i, counts& to) {
    const deadline within = i % 3 == 0 ? deadline(std::chrono::microseconds(i % 50)) : deadline();
    const auto got = co_await co_lock(on, lock, whole, within);
    if (not got) {
        ++to.ended;
        co_return failure(got.error());
    }
    if (++to.inside != 1) ++to.wrong;
    if (i % 7 == 0) co_await yield(on);
    --to.inside;
    ++to.granted;
    co_return {};
}

task<void> hold_within(io_multiplexer& on, range_lock& lock, int i, counts& to) {
    if (i % 5 == 0) {
        (void)co_await with_deadline(on, hold(on, lock, i, to), 20us);
    } else {
        (void)co_await hold(on, lock, i, to);
    }
}

TEST_P(range_locks_by_threads, exclude_tasks_and_are_granted_once_each) {
    constexpr int times = 300;
    counts came;
    {
        const run_threads all(loop());
        std::vector<std::jthread> callers;
        for (int t = 0; t < 2; ++t) {
            callers.emplace_back([&] {
                sync_wait(loop(), [](io_multiplexer& on, range_lock& of, counts& to) -> task<void> {
                    task_group group(on);
                    for (int i = 0; i < times; ++i)
                        group.spawn(hold_within(on, of, i, to));
                    co_await group.join();
                }(loop(), lock, came));
            });
        }
    }
    EXPECT_EQ(came.granted.load() + came.ended.load(), 2 * times);
    EXPECT_EQ(came.wrong.load(), 0);
    EXPECT_TRUE(lock.try_lock(whole));
}

TEST_P(range_locks_by_threads, are_requested_and_cancelled_by_any_thread) {
    struct receiver {
        std::atomic<int>* granted;
        std::atomic<int>* dones;
        void set_value(result<range_guard>&& got) const noexcept { *granted += got.has_value() ? 1 : 0; }
        void set_done() const noexcept { dones->fetch_add(1, std::memory_order_release); }
    };
    constexpr int times = 300;
    std::atomic<int> granted = 0;
    std::atomic<int> dones = 0;
    const run_threads all(loop());
    for (int i = 0; i < times; ++i) {
        auto held = lock.try_lock(whole);
        ASSERT_TRUE(held);
        auto state = connect(atomic(async_lock(loop(), lock, whole)), receiver{&granted, &dones});
        state.start();
        std::jthread canceller([&] { state.cancel(); });
        held.unlock();
        canceller.join();
        while (dones.load(std::memory_order_acquire) <= i)
            (void)state.poll();
        while (state.started()) {}
    }
    EXPECT_EQ(dones.load(), times);
    EXPECT_TRUE(lock.try_lock(whole));
}

}  // namespace
}  // namespace sluice::io
