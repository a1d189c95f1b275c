#include "sluice/io/task/call_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/base/result.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"

namespace sluice::io {
namespace {

class calling : public testing::Test {
protected:
    template <class T>
    T run(task<T> root) {
        return sync_wait(*loop_, std::move(root));
    }
    // A call that records its thread.
    static task<std::thread::id> where(call_threads& threads, io_multiplexer& loop) {
        co_return co_await threads.run(loop, [] { return std::this_thread::get_id(); });
    }
    std::unique_ptr<io_multiplexer> loop_ = make_epoll_multiplexer(0).value();
};

TEST_F(calling, runs_elsewhere_and_resumes_on_its_own_thread) {
    call_threads threads(1);
    const auto work = [](call_threads& on, io_multiplexer& loop) -> task<bool> {
        const std::thread::id home = std::this_thread::get_id();
        const std::thread::id there = co_await on.run(loop, [] { return std::this_thread::get_id(); });
        co_return there != home and std::this_thread::get_id() == home;
    };
    EXPECT_TRUE(run(work(threads, *loop_)));
}

TEST_F(calling, returns_the_result_of_the_call_also_if_it_is_a_failure) {
    call_threads threads(1);
    const auto work = [](call_threads& on, io_multiplexer& loop) -> task<result<int>> {
        co_return co_await on.run(loop, [] { return result<int>(failure({EIO, "call"})); });
    };
    EXPECT_EQ(run(work(threads, *loop_)).error().code(), EIO);
}

// The condition that a call waits for.
struct gate {
    std::atomic<bool> is_shut{true};
    std::atomic<int> inside{0};
    int pass() {
        const int now = ++inside;
        inside.notify_all();
        is_shut.wait(true);
        return now;
    }
    void open() {
        is_shut = false;
        is_shut.notify_all();
    }
};

task<void> pass(call_threads& on, io_multiplexer& loop, gate& through, int& passed) {
    (void)co_await on.run(loop, [&] { return through.pass(); });
    ++passed;
}

TEST_F(calling, delays_no_other_work_of_the_loop_and_no_call_that_has_a_thread) {
    call_threads threads(2);
    gate shut;
    int passed = 0;
    task_group group(*loop_);
    group.spawn(pass(threads, *loop_, shut, passed));
    // The second thread's, twice.
    EXPECT_NE(run(where(threads, *loop_)), std::this_thread::get_id());
    EXPECT_NE(run(where(threads, *loop_)), std::this_thread::get_id());
    EXPECT_EQ(passed, 0);
    shut.open();
    while (group.size() != 0)
        (void)loop_->run();
    EXPECT_EQ(passed, 1);
}

TEST_F(calling, has_as_many_calls_at_once_as_threads_and_the_rest_waits) {
    call_threads threads(2);
    gate shut;
    int passed = 0;
    task_group group(*loop_);
    for (int i = 0; i != 5; ++i)
        group.spawn(pass(threads, *loop_, shut, passed));
    for (int there = shut.inside; there != 2; there = shut.inside)
        shut.inside.wait(there);
    EXPECT_EQ(passed, 0);
    shut.open();
    while (group.size() != 0)
        (void)loop_->run();
    EXPECT_EQ(passed, 5);
    EXPECT_EQ(shut.inside, 5);
}

// Carries out calls when a test wants it.
class executor_of_test final : public call_executor {
public:
    void submit(queued_call& one) noexcept override { queue_.push_back(&one); }
    bool cancel(queued_call& one) noexcept override { return std::erase(queue_, &one) != 0; }
    call_statistics statistics() const noexcept override { return {.queued = queue_.size()}; }
    void carry_out_last() {
        queued_call* const last = queue_.back();
        queue_.pop_back();
        carry_out(*last);
    }

private:
    std::vector<queued_call*> queue_;
};

task<void> number(call_threads& on, io_multiplexer& loop, call_cancellation& by, int given,
                  std::optional<int>& got) {
    got = co_await on.run(loop, &by, [given] { return given; });
}

TEST_F(calling, leaves_time_and_order_of_the_calls_to_an_executor) {
    executor_of_test executor;
    call_threads threads({.executor = &executor});
    EXPECT_TRUE(threads.start_first_thread());
    call_cancellation kept;
    call_cancellation cancelled;
    std::optional<int> first = -1;
    std::optional<int> second = -1;
    std::optional<int> third = -1;
    task_group group(*loop_);
    group.spawn(number(threads, *loop_, cancelled, 1, first));
    group.spawn(number(threads, *loop_, kept, 2, second));
    group.spawn(number(threads, *loop_, kept, 3, third));
    EXPECT_EQ(threads.statistics().queued, 3U);
    EXPECT_EQ(threads.statistics().threads, 0U);
    executor.carry_out_last();
    cancelled.cancel();
    EXPECT_EQ(third, -1) << "a call resumes no coroutine";
    while (loop_->invoke_posted_items().value_or(0) > 0) {}
    EXPECT_EQ(first, std::nullopt);
    EXPECT_EQ(third, 3);
    EXPECT_EQ(second, -1);
    executor.carry_out_last();
    while (group.size() != 0)
        (void)loop_->run();
    EXPECT_EQ(second, 2);
}

// With several loops, each call returns to its own.
TEST_F(calling, serves_several_loops_many_times) {
    constexpr int calls = 500;
    std::vector<std::unique_ptr<io_multiplexer>> loops;
    for (int i = 0; i != 3; ++i)
        loops.push_back(make_epoll_multiplexer(0).value());
    call_threads threads(3);
    const auto work = [](call_threads& on, io_multiplexer& loop) -> task<int> {
        int right = 0;
        const std::thread::id home = std::this_thread::get_id();
        for (int i = 0; i != calls; ++i) {
            const int got = co_await on.run(loop, [i] { return i + 1; });
            right += got == i + 1 and std::this_thread::get_id() == home ? 1 : 0;
        }
        co_return right;
    };
    std::vector<std::thread> others;
    std::atomic<int> right{0};
    for (const auto& loop : loops)
        others.emplace_back([&] { right += sync_wait(*loop, work(threads, *loop)); });
    for (std::thread& each : others)
        each.join();
    EXPECT_EQ(right, 3 * calls);
}

}  // namespace
}  // namespace sluice::io
