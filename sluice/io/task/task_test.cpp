#include "sluice/io/task/task.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::io {
namespace {

class tasks : public testing::Test {
protected:
    template <class T>
    T run(task<T> root) {
        return sync_wait(*multiplexer_, std::move(root));
    }
    std::unique_ptr<io_multiplexer> multiplexer_ = make_epoll_multiplexer(0).value();
};

task<int> number(int n) {
    co_return n;
}

task<int> sum_of_two(int a, int b) {
    const int first = co_await number(a);
    const int second = co_await number(b);
    co_return first + second;
}

TEST_F(tasks, a_task_returns_its_value_to_its_awaiter) {
    EXPECT_EQ(run(sum_of_two(40, 2)), 42);
}

task<void> mark(bool& ran) {
    ran = true;
    co_return;
}

TEST_F(tasks, the_body_begins_when_the_task_is_awaited_and_not_before) {
    bool ran = false;
    auto lazy = mark(ran);
    EXPECT_FALSE(ran);
    run(std::move(lazy));
    EXPECT_TRUE(ran);
}

TEST_F(tasks, a_task_that_is_never_awaited_is_destroyed_without_running) {
    bool ran = false;
    { const auto unused = mark(ran); }
    EXPECT_FALSE(ran);
}

task<std::unique_ptr<int>> boxed(int n) {
    co_return std::make_unique<int>(n);
}

TEST_F(tasks, a_move_only_value_is_moved_out) {
    EXPECT_EQ(*run(boxed(7)), 7);
}

task<int&> same(int& n) {
    co_return n;
}

TEST_F(tasks, a_reference_refers_to_the_very_object) {
    int object = 1;
    int& returned = run(same(object));
    EXPECT_EQ(&returned, &object);
}

task<result<int>> refused() {
    co_return failure({EACCES, "open"});
}

TEST_F(tasks, a_failure_is_returned_as_a_value) {
    EXPECT_EQ(run(refused()).error(), std::errc::permission_denied);
}

task<int> depth(int levels) {
    if (levels == 0) co_return 0;
    const int below = co_await depth(levels - 1);
    co_return below + 1;
}

TEST_F(tasks, a_hundred_thousand_tasks_deep_do_not_overflow_the_stack) {
    EXPECT_EQ(run(depth(100'000)), 100'000);
}

task<long> loop_over_tasks(int times) {
    long sum = 0;
    for (int i = 0; i < times; ++i)
        sum += co_await number(1);
    co_return sum;
}

TEST_F(tasks, a_loop_over_a_million_tasks_does_not_grow_the_stack) {
    EXPECT_EQ(run(loop_over_tasks(1'000'000)), 1'000'000);
}

task<int> ping_pong(pipe_handle::pair& pipe, int times) {
    std::array<std::byte, 1> one{};
    int sum = 0;
    for (int i = 0; i < times; ++i) {
        const auto wrote = co_await co_write(pipe.writer, io_request<const_bytes_type>{one});
        const auto read = co_await co_read(pipe.reader, io_request<bytes_type>{one});
        sum += static_cast<int>(wrote.bytes_transferred() + read.bytes_transferred());
    }
    co_return sum;
}

TEST_F(tasks, a_loop_over_io_that_is_always_ready_does_not_grow_the_stack) {
    auto pipe = pipe_handle::anonymous().value();
    ASSERT_TRUE(pipe.reader.set_multiplexer(multiplexer_.get()).has_value());
    ASSERT_TRUE(pipe.writer.set_multiplexer(multiplexer_.get()).has_value());
    EXPECT_EQ(run(ping_pong(pipe, 100'000)), 200'000);
}

struct tracer {
    std::vector<std::string>* log;
    const char* name;
    tracer(std::vector<std::string>& to, const char* what) : log(&to), name(what) {}
    tracer(const tracer&) = delete;
    tracer& operator=(const tracer&) = delete;
    ~tracer() { log->emplace_back(name); }
};

task<void> inner(std::vector<std::string>& log) {
    const tracer local(log, "inner local");
    co_return;
}

task<void> outer(std::vector<std::string>& log) {
    const tracer local(log, "outer local");
    co_await inner(log);
    log.emplace_back("inner awaited");
}

TEST_F(tasks, locals_are_destroyed_before_the_awaiting_task_resumes) {
    std::vector<std::string> log;
    run(outer(log));
    EXPECT_EQ(log, (std::vector<std::string>{"inner local", "inner awaited", "outer local"}));
}

TEST_F(tasks, moving_a_task_moves_the_ownership_of_its_frame) {
    auto first = number(3);
    auto second = std::move(first);
    EXPECT_FALSE(first.is_valid());  // NOLINT: tests the state after the move
    EXPECT_EQ(run(std::move(second)), 3);
}

struct account {
    int balance = 5;
    task<int> after(int change) { co_return balance + change; }
};

TEST_F(tasks, a_member_function_may_be_a_task) {
    account mine;
    EXPECT_EQ(run(mine.after(2)), 7);
}

task<void> throwing() {
    throw std::runtime_error("thrown in a task");
    co_return;
}

TEST_F(tasks, an_exception_that_leaves_a_task_reaches_its_awaiter) {
    EXPECT_THROW(run(throwing()), std::runtime_error);
    const auto catches = []() -> task<std::string> {
        try {
            co_await throwing();
        } catch (const std::runtime_error& thrown) {
            co_return thrown.what();
        }
        co_return "nothing";
    };
    EXPECT_EQ(run(catches()), "thrown in a task");
}

TEST_F(tasks, an_exception_of_a_task_with_a_result_is_thrown_when_it_is_taken) {
    const auto divides = [](int by) -> task<int> {
        if (by == 0) throw std::domain_error("division by 0");
        co_return 12 / by;
    };
    EXPECT_EQ(run(divides(4)), 3);
    EXPECT_THROW((void)run(divides(0)), std::domain_error);
}

TEST_F(tasks, waiting_for_a_task_inside_a_task_stops_the_program) {
    const auto nested = [](io_multiplexer& multiplexer) -> task<int> {
        const auto slept = co_await co_sleep(multiplexer, std::chrono::milliseconds(1));
        EXPECT_TRUE(slept.has_value());
        const auto waits = [](io_multiplexer& same) -> task<int> {
            const auto late = co_await co_sleep(same, std::chrono::milliseconds(1));
            co_return late.has_value() ? 1 : 0;
        };
        co_return sync_wait(multiplexer, waits(multiplexer));
    };
    EXPECT_DEATH((void)run(nested(*multiplexer_)), "must not be called from a receiver");
}

}  // namespace
}  // namespace sluice::io
