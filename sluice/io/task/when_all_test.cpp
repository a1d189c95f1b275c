#include "sluice/io/task/when_all.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "sluice/io/task/coroutine_testing.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::io {
namespace {

class joining : public coroutine_test {};

task<int> number(int n) {
    co_return n;
}
task<void> nothing() {
    co_return;
}
task<result<int>> refused() {
    co_return failure({EACCES, "open"});
}

TEST_P(joining, when_all_returns_every_result_in_order) {
    const auto three = []() -> task<std::tuple<int, std::monostate, result<int>>> {
        co_return co_await when_all(number(1), nothing(), refused());
    };
    const auto [one, none, failed] = run(three());
    EXPECT_EQ(one, 1);
    EXPECT_EQ(none, std::monostate());
    EXPECT_EQ(failed.error(), std::errc::permission_denied);
}

// Logs its end.
task<int> read_then_log(pipe_handle& from, int name, std::vector<int>& log) {
    const int code = co_await read_one(from);
    log.push_back(name);
    co_return code;
}

TEST_P(joining, when_all_waits_for_the_last_also_after_a_failure) {
    auto slow = make_pipe();
    auto failing = make_pipe();
    ASSERT_TRUE(failing.writer.close().has_value());
    std::vector<int> log;
    const auto all = [](pipe_handle& from, std::vector<int>& ended) -> task<void> {
        auto codes = co_await when_all(read_then_log(from, 1, ended), refused(), number(3));
        EXPECT_EQ(std::get<0>(codes), 0);
        EXPECT_FALSE(std::get<1>(codes).has_value());
        ended.push_back(2);
    };
    ASSERT_TRUE(
        multiplexer_->post([&]() noexcept { EXPECT_TRUE(write_one(slow.writer).has_value()); }).has_value());
    run(all(slow.reader, log));
    EXPECT_EQ(log, (std::vector{1, 2}));
}

TEST_P(joining, tasks_advance_concurrently_and_end_in_the_order_of_their_io) {
    auto first = make_pipe();
    auto second = make_pipe();
    std::vector<int> log;
    const auto write_after = [](pipe_handle& from, pipe_handle& to) -> task<int> {
        const int code = co_await read_one(from);
        EXPECT_TRUE(write_one(to).has_value());
        co_return code;
    };
    const auto join = [](task<int> a, task<int> b) -> task<std::tuple<int, int>> {
        co_return co_await when_all(std::move(a), std::move(b));
    };
    ASSERT_TRUE(write_one(second.writer).has_value());
    EXPECT_EQ(run(join(read_then_log(first.reader, 1, log), write_after(second.reader, first.writer))),
              std::tuple(0, 0));
    EXPECT_EQ(log, std::vector{1});
}

TEST_P(joining, when_all_of_a_vector_returns_a_vector_of_results) {
    const auto sum = []() -> task<std::vector<int>> {
        std::vector<task<int>> children;
        for (int i = 0; i < 100; ++i)
            children.push_back(number(i));
        co_return co_await when_all(std::move(children));
    };
    const auto results = run(sum());
    ASSERT_EQ(results.size(), 100U);
    EXPECT_EQ(results[99], 99);
}

TEST_P(joining, when_all_of_a_span_leaves_the_results_in_the_tasks) {
    const auto sum = []() -> task<int> {
        std::array<task<int>, 2> children{number(40), number(2)};
        co_await when_all(std::span<task<int>>(children));
        co_return children[0].take_result() + children[1].take_result();
    };
    EXPECT_EQ(run(sum()), 42);
}

TEST_P(joining, when_all_of_no_tasks_resumes_at_once) {
    const auto none = []() -> task<std::size_t> {
        std::vector<task<int>> no_children;
        const auto results = co_await when_all(std::move(no_children));
        co_return results.size();
    };
    EXPECT_EQ(run(none()), 0U);
}

TEST_P(joining, a_loop_over_when_all_does_not_grow_the_stack) {
    const auto loop = []() -> task<int> {
        int sum = 0;
        for (int i = 0; i < 100'000; ++i) {
            auto [a, b] = co_await when_all(number(1), number(1));
            sum += a + b;
        }
        co_return sum;
    };
    EXPECT_EQ(run(loop()), 200'000);
}

task<std::tuple<int, int>> read_both(pipe_handle& a, pipe_handle& b) {
    co_return co_await when_all(read_one(a), read_one(b));
}

TEST_P(joining, cancelling_the_scope_of_the_parent_ends_all_children) {
    auto a = make_pipe();
    auto b = make_pipe();
    cancel_scope scope;
    ASSERT_TRUE(multiplexer_->post([&scope]() noexcept { scope.cancel(); }).has_value());
    EXPECT_EQ(run(in_scope(scope, read_both(a.reader, b.reader))), std::tuple(ECANCELED, ECANCELED));
}

task<std::array<int, 3>> race_of_two(pipe_handle& a, pipe_handle& b) {
    std::array<task<int>, 2> runners{read_one(a), read_one(b)};
    const auto first = co_await race(std::span<task<int>>(runners));
    co_return std::array{static_cast<int>(first), runners[0].take_result(), runners[1].take_result()};
}

TEST_P(joining, the_first_of_a_race_cancels_the_others) {
    auto never = make_pipe();
    auto soon = make_pipe();
    ASSERT_TRUE(
        multiplexer_->post([&]() noexcept { EXPECT_TRUE(write_one(soon.writer).has_value()); }).has_value());
    EXPECT_EQ(run(race_of_two(never.reader, soon.reader)), (std::array{1, ECANCELED, 0}));
    EXPECT_EQ(multiplexer_->pending(), 0U);
}

TEST_P(joining, a_race_won_before_all_have_started_still_waits_for_all) {
    auto ready = make_pipe();
    auto never = make_pipe();
    ASSERT_TRUE(write_one(ready.writer).has_value());
    EXPECT_EQ(run(race_of_two(ready.reader, never.reader)), (std::array{0, 0, ECANCELED}));
}

TEST_P(joining, a_race_in_a_cancelled_scope_is_cancelled) {
    auto a = make_pipe();
    auto b = make_pipe();
    cancel_scope scope;
    ASSERT_TRUE(multiplexer_->post([&scope]() noexcept { scope.cancel(); }).has_value());
    EXPECT_EQ(run(in_scope(scope, race_of_two(a.reader, b.reader)))[1], ECANCELED);
}

SLUICE_TEST_COROUTINES_OVER_ALL(joining);

}  // namespace
}  // namespace sluice::io
