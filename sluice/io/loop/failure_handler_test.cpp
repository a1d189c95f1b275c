// Failures that no function can return.

#include "sluice/io/loop/failure_handler.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "sluice/io/task/coroutine_testing.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/io/task/when_all.hpp"
#include "sluice/io/task/with_deadline.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> reports;

class failures : public coroutine_test {
protected:
    failures() {
        reports.clear();
        before_ = set_failure_handler([](unreturned_failure which, const char* what) noexcept {
            reports.push_back(std::to_string(static_cast<int>(which)) + " " + what);
        });
    }
    ~failures() override { (void)set_failure_handler(before_); }

    /// A task that waits for a byte in a buffer of its own frame.
    static task<void> wait_in_frame(pipe_handle& from, int& goes_on) {
        std::array<std::byte, 4096> block{};
        (void)co_await co_read(from, io_request<bytes_type>{block});
        ++goes_on;
    }

    failure_handler before_ = nullptr;
};

task<int> throwing(const char* what) {
    throw std::runtime_error(what);
    co_return 0;
}

TEST_P(failures, are_printed_and_terminate_the_program_by_default) {
    (void)set_failure_handler(nullptr);
    EXPECT_DEATH(report_unreturned(unreturned_failure::exception_left_task, "thrown in a child"),
                 "an exception left a task without an awaiter: thrown in a child");
}

TEST_P(failures, in_a_child_of_a_group_go_to_the_handler_and_the_others_continue) {
    auto pipe = make_pipe();
    int ended = 0;
    const auto throws = []() -> task<void> {
        throw std::runtime_error("thrown in a child");
        co_return;
    };
    const auto both = [&]() -> task<void> {
        task_group group(*multiplexer_);
        group.spawn(wait_in_frame(pipe.reader, ended));
        group.spawn(throws());
        EXPECT_EQ(group.size(), 1U);
        EXPECT_TRUE(write_one(pipe.writer).has_value());
        co_await group.join();
    };
    run(both());
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(reports, std::vector<std::string>{"0 thrown in a child"});
}

TEST_P(failures, in_one_of_several_tasks_are_thrown_when_all_have_finished) {
    auto pipe = make_pipe();
    int ended = 0;
    const auto later = [&]() -> task<void> {
        (void)co_await co_sleep(*multiplexer_, 1ms);
        EXPECT_TRUE(write_one(pipe.writer).has_value());
    };
    const auto all = [&]() -> task<std::string> {
        try {
            (void)co_await when_all(throwing("first"), wait_in_frame(pipe.reader, ended), later(),
                                    throwing("second"));
        } catch (const std::runtime_error& thrown) {
            co_return thrown.what();
        }
        co_return "nothing";
    };
    EXPECT_EQ(run(all()), "first");
    EXPECT_EQ(ended, 1);
    EXPECT_TRUE(reports.empty());
}

TEST_P(failures, in_a_task_with_a_deadline_are_thrown) {
    EXPECT_THROW((void)run(with_deadline(*multiplexer_, throwing("early"), 1h)), std::runtime_error);
    const auto throws = []() -> task<void> {
        throw std::runtime_error("early");
        co_return;
    };
    EXPECT_THROW((void)run(with_deadline(*multiplexer_, throws(), 1h)), std::runtime_error);
    EXPECT_EQ(multiplexer_->pending(), 0U);
}

TEST_P(failures, leave_nothing_pending_when_a_waiting_frame_is_destroyed) {
    auto pipe = make_pipe();
    int goes_on = 0;
    {
        const auto waiting = wait_in_frame(pipe.reader, goes_on);
        waiting.frame().resume();
        (void)multiplexer_->try_run();  // the kernel knows of it
        EXPECT_EQ(multiplexer_->pending(), 1U);
    }
    EXPECT_EQ(multiplexer_->pending(), 0U);
    EXPECT_EQ(reports.size(), 1U);
    EXPECT_TRUE(reports[0].starts_with("1 ")) << reports[0];
    // The next read gets the byte: the kernel did not put it into the freed frame.
    EXPECT_TRUE(write_one(pipe.writer).has_value());
    while (multiplexer_->try_run().value_or(0) > 0) {}
    EXPECT_EQ(run(read_one(pipe.reader)), 0);
    EXPECT_EQ(goes_on, 0);
}

TEST_P(failures, leave_nothing_pending_when_a_frame_is_destroyed_before_its_operation_is_submitted) {
    auto pipe = make_pipe();
    int goes_on = 0;
    { wait_in_frame(pipe.reader, goes_on).frame().resume(); }
    EXPECT_EQ(multiplexer_->pending(), 0U);
    EXPECT_EQ(reports.size(), 1U);
}

TEST_P(failures, leave_the_scope_of_a_destroyed_frame_usable) {
    auto pipe = make_pipe();
    cancel_scope scope;
    int goes_on = 0;
    {
        const auto waiting = in_scope(scope, wait_in_frame(pipe.reader, goes_on));
        waiting.frame().resume();
    }
    scope.cancel();
    EXPECT_EQ(run(in_scope(scope, read_one(pipe.reader))), ECANCELED);
}

TEST_P(failures, signal_no_other_receiver_when_a_frame_with_a_known_outcome_is_destroyed) {
    auto pipe = make_pipe();
    auto other = make_pipe();
    int goes_on = 0, others = 0;
    task_group group(*multiplexer_);
    group.spawn(wait_in_frame(other.reader, others));
    {
        const auto waiting = wait_in_frame(pipe.reader, goes_on);
        waiting.frame().resume();
        (void)multiplexer_->try_run();
        EXPECT_TRUE(write_one(other.writer).has_value());
        EXPECT_TRUE(write_one(pipe.writer).has_value());
    }
    EXPECT_EQ(others, 0) << "it is signalled by the loop only";
    while (multiplexer_->pending() != 0)
        ASSERT_TRUE(multiplexer_->run().has_value());
    EXPECT_EQ(others, 1);
    EXPECT_EQ(goes_on, 0);
    EXPECT_EQ(group.size(), 0U);
}

TEST_P(failures, leave_nothing_pending_when_a_frame_with_a_deadline_is_destroyed) {
    auto pipe = make_pipe();
    int goes_on = 0;
    {
        const auto waiting = with_deadline(*multiplexer_, wait_in_frame(pipe.reader, goes_on), 1h);
        waiting.frame().resume();
        (void)multiplexer_->try_run();
        EXPECT_EQ(multiplexer_->pending(), 2U);
    }
    EXPECT_EQ(multiplexer_->pending(), 0U);
}

TEST_P(failures, leave_nothing_pending_when_a_frame_in_a_race_is_destroyed) {
    auto pipe = make_pipe();
    int goes_on = 0;
    const auto races = [](pipe_handle& from, int& count) -> task<void> {
        std::vector<task<void>> racers;
        racers.push_back(wait_in_frame(from, count));
        racers.push_back(wait_in_frame(from, count));
        (void)co_await race(std::span(racers));
    };
    {
        const auto waiting = races(pipe.reader, goes_on);
        waiting.frame().resume();
        EXPECT_EQ(multiplexer_->pending(), 2U);
    }
    EXPECT_EQ(multiplexer_->pending(), 0U);
    EXPECT_EQ(reports.size(), 2U);
}

struct ignoring {
    void set_value(io_result<bytes_type>&&) noexcept { ADD_FAILURE() << "signalled"; }
    void set_done() noexcept { ADD_FAILURE() << "signalled"; }
};

TEST_P(failures, leave_nothing_pending_when_a_connected_state_is_destroyed) {
    auto pipe = make_pipe();
    for (const auto how : {initiation::automatic, initiation::batched}) {
        {
            auto block = std::make_unique<std::array<std::byte, 4096>>();
            auto state = connect(async_read(pipe.reader, io_request<bytes_type>{*block}), ignoring{});
            state.start(how);
            (void)multiplexer_->try_run();
        }
        EXPECT_EQ(multiplexer_->pending(), 0U);
    }
    ASSERT_EQ(reports.size(), 2U);
    EXPECT_TRUE(reports[0].starts_with("2 ")) << reports[0];
    EXPECT_TRUE(write_one(pipe.writer).has_value());
    EXPECT_EQ(run(read_one(pipe.reader)), 0);
}

TEST_P(failures, in_conversions_to_the_result_of_a_task_are_thrown) {
    struct throws {
        operator int() const { throw std::runtime_error("converted"); }  // NOLINT: meant to convert
    };
    const auto work = []() -> task<int> { co_return throws(); };
    EXPECT_THROW((void)run(work()), std::runtime_error);
}

SLUICE_TEST_COROUTINES_OVER_ALL(failures);

}  // namespace
}  // namespace sluice::io
