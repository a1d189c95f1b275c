// Range locks that tasks and receivers wait for through a multiplexer.

#include "sluice/io/task/range_lock_sender.hpp"

#include <atomic>
#include <thread>

#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/task/coroutine_testing.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/io/task/with_deadline.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using sync::byte_range;
using sync::range_guard;
using sync::range_lock;

static_assert(sender<decltype(async_lock(std::declval<io_multiplexer&>(), std::declval<range_lock&>(),
                                         std::declval<sync::lock_args>()))>);

const sync::lock_args all{.where = byte_range::whole()};

class range_locks : public coroutine_test {
protected:
    static int code_of(const result<range_guard>& got) { return got ? 0 : got.error().code(); }

    /// Expects that there is neither a holder nor a waiter.
    void expect_free() { EXPECT_TRUE(lock_.try_lock(all)); }

    range_lock lock_;
};

task<int> lock_and_release(io_multiplexer& multiplexer, range_lock& lock, deadline within) {
    const auto got = co_await co_lock(multiplexer, lock, all, within);
    co_return got ? 0 : got.error().code();
}

TEST_P(range_locks, that_are_free_are_granted_without_suspending) {
    bool is_over = false;
    const auto waits = [&](task<int> inner) -> task<void> {
        EXPECT_EQ(co_await std::move(inner), 0);
        is_over = true;
    };
    task_group group(*multiplexer_);
    group.spawn(waits(lock_and_release(*multiplexer_, lock_, {})));
    EXPECT_TRUE(is_over);
    expect_free();
}

// The next step of the task is I/O on handles of its own multiplexer, which stops the program on
// another thread.
TEST_P(range_locks, released_on_another_thread_resume_a_task_on_its_own) {
    auto pipe = make_pipe();
    const auto here = std::this_thread::get_id();
    for (int i = 0; i < 200; ++i) {
        std::atomic<bool> holds{false};
        std::jthread other([&] {
            const range_guard held = lock_.lock(all);
            holds.store(true, std::memory_order_release);
            if (i % 2 == 0) std::this_thread::yield();
        });
        while (not holds.load(std::memory_order_acquire)) {}
        const auto work = [&]() -> task<int> {
            const auto got = co_await co_lock(*multiplexer_, lock_, all);
            EXPECT_EQ(std::this_thread::get_id(), here);
            EXPECT_TRUE(write_one(pipe.writer).has_value());
            std::array<std::byte, 1> one{};
            const auto read = co_await co_read(pipe.reader, io_request<bytes_type>{one});
            co_return got and read ? 0 : 1;
        };
        ASSERT_EQ(run(work()), 0);
    }
}

TEST_P(range_locks, that_are_not_granted_in_time_end_with_an_error) {
    const range_guard held = lock_.lock(all);
    EXPECT_EQ(run(lock_and_release(*multiplexer_, lock_, 5ms)), ETIMEDOUT);
    EXPECT_EQ(multiplexer_->pending(), 0U);
}

TEST_P(range_locks, with_a_deadline_of_zero_are_tried_once) {
    range_guard held = lock_.lock(all);
    EXPECT_EQ(run(lock_and_release(*multiplexer_, lock_, deadline::zero())), ETIMEDOUT);
    held.unlock();
    EXPECT_EQ(run(lock_and_release(*multiplexer_, lock_, deadline::zero())), 0);
    expect_free();
}

TEST_P(range_locks, are_cancelled_when_the_time_of_their_task_is_up) {
    {
        const range_guard held = lock_.lock(all);
        const auto work = [&]() -> task<result<int>> {
            const auto got = co_await co_lock(*multiplexer_, lock_, all);
            if (not got) co_return failure(got.error());
            co_return 1;
        };
        const auto outcome = run(with_deadline(*multiplexer_, work(), 5ms));
        ASSERT_FALSE(outcome.has_value());
        EXPECT_EQ(outcome.error(), std::errc::timed_out);
    }
    expect_free();
}

TEST_P(range_locks, are_cancelled_with_their_scope) {
    range_guard held = lock_.lock(all);
    cancel_scope scope;
    ASSERT_TRUE(multiplexer_->post([&]() noexcept { scope.cancel(); }).has_value());
    EXPECT_EQ(run(in_scope(scope, lock_and_release(*multiplexer_, lock_, {}))), ECANCELED);
    held.unlock();
    EXPECT_EQ(run(in_scope(scope, lock_and_release(*multiplexer_, lock_, {}))), ECANCELED);
    expect_free();
}

TEST_P(range_locks, are_cancelled_with_all_waits_of_their_owner) {
    const range_guard held = lock_.lock(all);
    const int owner = 0;
    ASSERT_TRUE(multiplexer_->post([&]() noexcept { EXPECT_EQ(lock_.cancel_all(&owner), 1U); }).has_value());
    const auto work = [&]() -> task<int> {
        const auto got =
            co_await co_lock(*multiplexer_, lock_, {.where = byte_range::whole(), .owner = &owner});
        co_return got ? 0 : got.error().code();
    };
    EXPECT_EQ(run(work()), ECANCELED);
}

TEST_P(range_locks, signal_their_receiver_in_poll_and_in_complete_io) {
    struct noting {
        std::optional<result<range_guard>>* into;
        void set_value(result<range_guard>&& got) const noexcept { *into = std::move(got); }
        void set_done() const noexcept {}
    };
    for (const bool polls : {true, false}) {
        std::optional<result<range_guard>> got;
        range_guard held = lock_.lock(all);
        auto state = connect(async_lock(*multiplexer_, lock_, all), noting{&got});
        state.start();
        EXPECT_FALSE(state.poll());
        EXPECT_EQ(multiplexer_->complete_io(), io_multiplexer::nothing_ready);
        held.unlock();
        EXPECT_FALSE(got) << "unlock() signals no receiver";
        if (polls) {
            EXPECT_TRUE(state.poll());
        } else {
            EXPECT_EQ(multiplexer_->complete_io(), 1);
        }
        ASSERT_TRUE(got and got->has_value());
        EXPECT_FALSE(state.started());
        got.reset();
        expect_free();
    }
}

TEST_P(range_locks, are_not_waited_for_after_their_task_was_destroyed) {
    const auto before = set_failure_handler([](unreturned_failure, const char*) noexcept {});
    {
        const range_guard held = lock_.lock(all);
        const auto waiting = lock_and_release(*multiplexer_, lock_, {});
        waiting.frame().resume();
        EXPECT_EQ(multiplexer_->pending(), 1U);
    }
    (void)set_failure_handler(before);
    EXPECT_EQ(multiplexer_->pending(), 0U);
    expect_free();
}

// Grants, deadlines and cancellations at the same time.
TEST_P(range_locks, exclude_tasks_on_several_threads) {
    constexpr int threads = 3;
    int inside = 0;
    std::atomic<int> granted{0}, refused{0};
    const auto loop = [&](int which) {
        auto own = GetParam().make().value();
        const auto work = [&](int i) -> task<void> {
            const deadline within = i % 3 == 0 ? deadline(std::chrono::microseconds(i % 50)) : deadline();
            const auto got = co_await co_lock(*own, lock_, all, within);
            if (not got) {
                refused.fetch_add(1, std::memory_order_relaxed);
                co_return;
            }
            EXPECT_EQ(++inside, 1);
            if (i % 7 == 0) (void)co_await co_sleep(*own, 1us);
            --inside;
            granted.fetch_add(1, std::memory_order_relaxed);
        };
        const auto often = [&]() -> task<void> {
            task_group group(*own);
            for (int i = 0; i < 200; ++i) {
                group.spawn(work(i));
                if (i % 5 == which) co_await yield(*own);
            }
            co_await group.join();
        };
        sync_wait(*own, often());
    };
    {
        std::vector<std::jthread> running;
        for (int i = 0; i < threads; ++i)
            running.emplace_back(loop, i);
    }
    EXPECT_EQ(granted.load() + refused.load(), threads * 200);
    EXPECT_GE(granted.load(), threads * 100);
    expect_free();
}

TEST(simulated_range_locks, that_are_only_polled_see_their_deadline_pass) {
    auto simulation = make_simulated_multiplexer({.seed = 1}).value();
    range_lock lock;
    const range_guard held = lock.lock(all);
    struct noting {
        int* code;
        void set_value(result<range_guard>&& got) const noexcept { *code = got ? 0 : got.error().code(); }
        void set_done() const noexcept {}
    };
    int code = -1;
    auto state = connect(async_lock(*simulation, lock, all, 10ms), noting{&code});
    state.start();
    while (not state.poll()) {}
    EXPECT_EQ(code, ETIMEDOUT);
}

SLUICE_TEST_COROUTINES_OVER_ALL(range_locks);

}  // namespace
}  // namespace sluice::io
