// Locks that tasks and receivers await on a multiplexer that several threads run. Runs under
// ThreadSanitizer.

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>

#include "sluice/fsmutex/async_lock.hpp"
#include "sluice/fsmutex/conformance_testing.hpp"
#include "sluice/io/loop/several_threads_testing.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;
using io::test_kit::run_threads;

class async_locks_by_threads : public on_each_algorithm {
protected:
    // Runs a test for each algorithm on both back ends.
    template <class Test>
    void on_each_back_end(Test&& test) {
        for (const char* const name : io::test_kit::back_ends_for_threads()) {
            const std::unique_ptr<io::io_multiplexer> loop = io::test_kit::multiplexer_for_threads(name);
            const std::unique_ptr<shared_fs_mutex> mutex = open();
            test(*loop, *mutex);
            EXPECT_TRUE(mutex->try_lock(entity(1))) << name;
            EXPECT_EQ(loop->pending(), 0U) << name;
        }
    }
};
SLUICE_ON_EACH_ALGORITHM(async_locks_by_threads);

struct counts {
    std::atomic<int> inside = 0;
    std::atomic<int> wrong = 0;
    std::atomic<int> granted = 0;
    std::atomic<int> ended = 0;

    void record(const result<fs_mutex_guard>& got) noexcept {
        if (got) {
            ++granted;
        } else if (got.error() == std::errc::timed_out or got.error() == std::errc::operation_canceled) {
            ++ended;
        }
    }
};

enum class form : unsigned char { coroutine, sender };

io::task<void> hold(io::io_multiplexer& on, shared_fs_mutex& mutex, form how, int i, counts& to) {
    const deadline within = i % 4 == 0 ? deadline(std::chrono::microseconds(50 * i)) : deadline();
    result<fs_mutex_guard> got;
    if (how == form::coroutine) {
        got = co_await co_lock(on, mutex, {entity(1)}, within);
    } else {
        got = co_await async_lock(on, mutex, {entity(1)}, within);
    }
    to.record(got);
    if (not got) co_return;
    if (++to.inside != 1) ++to.wrong;
    if (i % 3 == 0) co_await io::yield(on);
    --to.inside;
}

TEST_P(async_locks_by_threads, exclude_tasks_and_are_granted_once_each) {
    static constexpr int times = 24;
    on_each_back_end([](io::io_multiplexer& loop, shared_fs_mutex& mutex) {
        for (const form how : {form::coroutine, form::sender}) {
            counts came;
            const run_threads all(loop);
            io::sync_wait(
                loop, [](io::io_multiplexer& on, shared_fs_mutex& of, form by, counts& to) -> io::task<void> {
                    io::task_group group(on);
                    for (int i = 0; i < times; ++i)
                        group.spawn(hold(on, of, by, i, to));
                    co_await group.join();
                }(loop, mutex, how, came));
            EXPECT_EQ(came.granted + came.ended, times);
            EXPECT_EQ(came.wrong.load(), 0);
        }
    });
}

TEST_P(async_locks_by_threads, are_requested_polled_and_cancelled_by_any_thread) {
    struct receiver {
        counts* came;
        std::atomic<int>* dones;
        void set_value(result<fs_mutex_guard> got) const noexcept { came->record(got); }
        void set_done() const noexcept { dones->fetch_add(1, std::memory_order_release); }
    };
    static constexpr int times = 20;
    on_each_back_end([](io::io_multiplexer& loop, shared_fs_mutex& mutex) {
        counts came;
        std::atomic<int> dones = 0;
        const run_threads all(loop);
        for (int i = 0; i < times; ++i) {
            auto held = mutex.lock(entity(1)).value();
            auto state = connect(io::atomic(async_lock(loop, mutex, {entity(1)})), receiver{&came, &dones});
            state.start();
            std::jthread canceller([&] {
                if (i % 3 == 0) std::this_thread::sleep_for(100us);
                state.cancel();
            });
            std::jthread poller([&] {
                for (int n = 0; n < 10; ++n)
                    (void)state.poll();
            });
            if (i % 2 == 0) held.unlock();
            canceller.join();
            poller.join();
            while (dones.load(std::memory_order_acquire) <= i)
                (void)state.poll();
            while (state.started()) {}
        }
        EXPECT_EQ(dones.load(), times);
        EXPECT_EQ(came.granted + came.ended, times);
    });
}

}  // namespace
}  // namespace sluice::fsmutex
