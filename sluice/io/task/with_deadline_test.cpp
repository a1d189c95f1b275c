#include "sluice/io/task/with_deadline.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "sluice/io/task/coroutine_testing.hpp"
#include "sluice/io/task/when_all.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;

class time_limits : public coroutine_test {};

task<result<int>> read_result(pipe_handle& from) {
    std::array<std::byte, 1> one{};
    const auto read = co_await co_read(from, io_request<bytes_type>{one});
    if (not read) co_return failure(read.error());
    co_return static_cast<int>(read.bytes_transferred());
}

TEST_P(time_limits, a_task_that_takes_too_long_ends_with_timed_out) {
    auto pipe = make_pipe();
    const auto outcome = run(with_deadline(*multiplexer_, read_result(pipe.reader), 5ms));
    static_assert(std::is_same_v<decltype(outcome), const result<int>>, "a result is not wrapped in another");
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error(), std::errc::timed_out);
    EXPECT_EQ(outcome.error().descriptor(), pipe.reader.descriptor());
    EXPECT_EQ(multiplexer_->pending(), 0U);
}

TEST_P(time_limits, a_task_that_is_in_time_keeps_its_outcome) {
    auto pipe = make_pipe();
    ASSERT_TRUE(write_one(pipe.writer).has_value());
    const auto outcome = run(with_deadline(*multiplexer_, read_result(pipe.reader), 1h));
    EXPECT_EQ(outcome.value(), 1);
    EXPECT_EQ(multiplexer_->pending(), 0U) << "the timer is gone";
}

TEST_P(time_limits, a_task_without_a_deadline_has_no_timer) {
    const auto count = [](io_multiplexer& multiplexer) -> task<std::size_t> {
        co_return multiplexer.pending();
    };
    EXPECT_EQ(run(with_deadline(*multiplexer_, count(*multiplexer_), {})).value(), 0U);
    EXPECT_EQ(run(with_deadline(*multiplexer_, count(*multiplexer_), 1h)).value(), 1U);
}

TEST_P(time_limits, a_void_task_that_is_ended_early_returns_a_result) {
    auto pipe = make_pipe();
    const auto read_and_forget = [](pipe_handle& from) -> task<void> {
        const int code = co_await read_one(from);
        EXPECT_EQ(code, ECANCELED);
    };
    const result<void> outcome = run(with_deadline(*multiplexer_, read_and_forget(pipe.reader), 5ms));
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error(), std::errc::timed_out);
}

TEST_P(time_limits, a_task_late_without_having_lost_any_io_keeps_its_outcome) {
    auto pipe = make_pipe();
    const auto busy = [](io_multiplexer& multiplexer) -> task<int> {
        const auto end = multiplexer.now() + 5ms;
        while (multiplexer.now() < end)
            co_await yield(multiplexer);
        co_return 7;
    };
    EXPECT_EQ(run(with_deadline(*multiplexer_, busy(*multiplexer_), 1ms)).value(), 7);
}

TEST_P(time_limits, a_task_that_fails_for_another_reason_reports_that_reason) {
    const auto fail_late = [](io_multiplexer& multiplexer) -> task<result<int>> {
        const auto slept = co_await co_sleep(multiplexer, 1h);
        EXPECT_FALSE(slept.has_value());
        co_return failure({EIO, "clean up"});
    };
    EXPECT_EQ(run(with_deadline(*multiplexer_, fail_late(*multiplexer_), 2ms)).error(), std::errc::io_error);
}

TEST_P(time_limits, cancelling_from_outside_is_not_reported_as_a_time_out) {
    auto pipe = make_pipe();
    cancel_scope scope;
    ASSERT_TRUE(multiplexer_->post([&scope]() noexcept { scope.cancel(); }).has_value());
    const auto outcome = run(in_scope(scope, with_deadline(*multiplexer_, read_result(pipe.reader), 1h)));
    EXPECT_EQ(outcome.error(), std::errc::operation_canceled);
}

TEST_P(time_limits, the_shorter_of_two_nested_limits_applies) {
    auto pipe = make_pipe();
    const auto inner_shorter =
        run(with_deadline(*multiplexer_, with_deadline(*multiplexer_, read_result(pipe.reader), 2ms), 1h));
    EXPECT_EQ(inner_shorter.error(), std::errc::timed_out);
    const auto outer_shorter =
        run(with_deadline(*multiplexer_, with_deadline(*multiplexer_, read_result(pipe.reader), 1h), 2ms));
    EXPECT_EQ(outer_shorter.error(), std::errc::timed_out);
}

task<std::tuple<int, int>> read_both(pipe_handle& a, pipe_handle& b) {
    co_return co_await when_all(read_one(a), read_one(b));
}

TEST_P(time_limits, a_limit_also_ends_nested_tasks) {
    auto a = make_pipe();
    auto b = make_pipe();
    const auto outcome = run(with_deadline(*multiplexer_, read_both(a.reader, b.reader), 2ms));
    EXPECT_EQ(outcome.error(), std::errc::timed_out);
}

TEST_P(time_limits, a_limited_clean_up_runs_in_a_cancelled_scope) {
    auto pipe = make_pipe();
    const auto clean_up = [](io_multiplexer& multiplexer, pipe_handle::pair& ends) -> task<int> {
        const int cut = co_await read_one(ends.reader);
        EXPECT_EQ(cut, ECANCELED);
        EXPECT_TRUE(write_one(ends.writer).has_value());
        const auto said = co_await uncancelled(with_deadline(multiplexer, read_result(ends.reader), 1h));
        EXPECT_TRUE(said.has_value());
        const auto unanswered =
            co_await uncancelled(with_deadline(multiplexer, read_result(ends.reader), 2ms));
        co_return unanswered.has_value() ? 0 : unanswered.error().code();
    };
    cancel_scope scope;
    scope.cancel();
    EXPECT_EQ(run(in_scope(scope, clean_up(*multiplexer_, pipe))), ETIMEDOUT);
}

TEST_P(time_limits, a_limit_around_an_uncancelled_task_stops_the_program) {
    auto pipe = make_pipe();
    EXPECT_DEATH((void)run(with_deadline(*multiplexer_, uncancelled(read_one(pipe.reader)), 1ms)),
                 "nothing would end it");
}

SLUICE_TEST_COROUTINES_OVER_ALL(time_limits);

}  // namespace
}  // namespace sluice::io
