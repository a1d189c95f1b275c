// Operations that complete at once, each started by the completion of the previous one, on a small
// stack.

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <utility>

#include "sluice/base/small_stack_testing.hpp"
#include "sluice/io/sender/execution.hpp"
#include "sluice/io/task/coroutine_testing.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/io/task/when_all.hpp"
#include "sluice/io/task/with_deadline.hpp"
#include "tests/execution_model/execution.hpp"

SLUICE_EXECUTION_TRAITS(model, execution_model, execution_model, _t);

namespace sluice::io {
namespace {

using bridge = execution_bridge<model>;

constexpr int many = 1'000'000;

class nesting : public testing::TestWithParam<coroutine_back_end> {
protected:
    // Called in the thread that will own the multiplexer.
    void make_multiplexer() {
        multiplexer_ = GetParam().make().value();
        pipe_.emplace(pipe_handle::anonymous().value());
        ASSERT_TRUE(pipe_->writer.set_multiplexer(multiplexer_.get()).has_value());
    }
    void destroy_multiplexer() {
        pipe_.reset();
        multiplexer_.reset();
    }
    // Both complete at once: a stream has nothing to make durable, and an empty pipe accepts a
    // write.
    [[nodiscard]] auto barrier() { return async_barrier(pipe_->writer); }
    [[nodiscard]] auto readiness() { return async_ready(pipe_->writer, direction::out); }
    template <class Work>
    void on_small_stack(Work work) {
        run_on_small_stack([&] {
            make_multiplexer();
            work();
            while (multiplexer_->run().value_or(0) > 0) {}
            destroy_multiplexer();
        });
    }

    std::unique_ptr<io_multiplexer> multiplexer_;
    std::optional<pipe_handle::pair> pipe_;
    int completions_ = 0;
};

// A receiver that starts its own state again.
template <class Sender>
struct restarting {
    template <class Outcome>
    void set_value(Outcome&& outcome) noexcept {
        EXPECT_TRUE(outcome.has_value());
    }
    void set_done() noexcept {
        if (++*completions < many) (*state)->start();
    }
    int* completions;
    std::optional<io_operation_connection<Sender, restarting>>* state;
};

template <class Sender>
void restart_often(Sender from, int& completions) {
    std::optional<io_operation_connection<Sender, restarting<Sender>>> state;
    io_multiplexer& multiplexer = from.multiplexer();
    state.emplace(std::move(from), restarting<Sender>{&completions, &state});
    state->start();
    while (multiplexer.run().value_or(0) > 0) {}
}

TEST_P(nesting, of_receivers_that_start_again_is_bounded) {
    on_small_stack([&] { restart_often(barrier(), completions_); });
    EXPECT_EQ(completions_, many);
    completions_ = 0;
    on_small_stack([&] { restart_often(readiness(), completions_); });
    EXPECT_EQ(completions_, many);
}

template <class Sender>
task<void> await_often(Sender what, int& completions) {
    for (int i = 0; i != many; ++i)
        if ((co_await what).has_value()) ++completions;
}

TEST_P(nesting, is_bounded_for_a_coroutine_that_awaits_again) {
    on_small_stack([&] { sync_wait(*multiplexer_, await_often(barrier(), completions_)); });
    EXPECT_EQ(completions_, many);
}

task<void> await_tasks(io_multiplexer& multiplexer, barrier_sender what, int& completions) {
    const auto one = [](barrier_sender from, int& count) -> task<void> {
        if ((co_await from).has_value()) ++count;
    };
    for (int i = 0; i != many / 4; ++i) {
        co_await one(what, completions);
        (void)co_await when_all(one(what, completions), one(what, completions));
        (void)co_await with_deadline(multiplexer, one(what, completions), std::chrono::hours(1));
    }
}

TEST_P(nesting, of_tasks_that_end_at_once_is_bounded) {
    on_small_stack([&] { sync_wait(*multiplexer_, await_tasks(*multiplexer_, barrier(), completions_)); });
    EXPECT_EQ(completions_, many);
}

// Senders of std::execution: each completion starts the next one.
template <class Sender>
struct chain {
    struct receiver {
        using receiver_concept = execution_model::receiver_t;
        struct environment {
            execution_model::inplace_stop_token token;
            [[nodiscard]] auto query(execution_model::get_stop_token_t) const noexcept { return token; }
        };
        template <class... Values>
        void set_value(Values&&...) && noexcept {
            in->go_on(in->values);
        }
        void set_error(error) && noexcept { in->go_on(in->errors); }
        void set_stopped() && noexcept { in->go_on(in->stops); }
        [[nodiscard]] environment get_env() const noexcept { return {in->source.get_token()}; }
        chain* in;
    };
    using state_type = decltype(std::declval<const Sender&>().connect(std::declval<receiver>()));

    explicit chain(Sender what) : from(std::move(what)) {}

    void go_on(int& counter) noexcept {
        if (++counter < many) start();
    }
    void start() noexcept {
        std::optional<state>& next = states[started++ % states.size()];
        next.reset();
        next.emplace(from, receiver{this});
        next->operation.start();
    }

    struct state {
        state(const Sender& of, receiver to) noexcept : operation(of.connect(to)) {}
        state_type operation;
    };

    Sender from;
    execution_model::inplace_stop_source source;
    std::array<std::optional<state>, 64> states;
    std::size_t started = 0;
    int values = 0;
    int errors = 0;
    int stops = 0;
};

TEST_P(nesting, of_senders_that_complete_at_once_is_bounded) {
    on_small_stack([&] {
        (void)multiplexer_->try_run();  // this thread owns it from now on
        chain work(bridge::as_sender(barrier()));
        work.start();
        while (multiplexer_->run().value_or(0) > 0) {}
        completions_ = work.values;
    });
    EXPECT_EQ(completions_, many);
}

TEST_P(nesting, of_senders_that_were_stopped_before_is_bounded) {
    on_small_stack([&] {
        (void)multiplexer_->try_run();
        chain work(bridge::as_sender(barrier()));
        work.source.request_stop();
        work.start();
        while (multiplexer_->run().value_or(0) > 0) {}
        completions_ = work.stops;
    });
    EXPECT_EQ(completions_, many);
}

TEST_P(nesting, of_schedule_is_bounded) {
    on_small_stack([&] {
        (void)multiplexer_->try_run();
        const io_multiplexer::work_guard more_to_come(*multiplexer_);
        chain work(bridge::get_scheduler(*multiplexer_).schedule());
        work.start();
        while (work.values != many)
            (void)multiplexer_->run();
        completions_ = work.values;
    });
    EXPECT_EQ(completions_, many);
}

INSTANTIATE_TEST_SUITE_P(over, nesting, testing::ValuesIn(coroutine_back_ends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace sluice::io
