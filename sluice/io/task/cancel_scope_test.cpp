#include "sluice/io/task/cancel_scope.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "sluice/io/task/coroutine_testing.hpp"
#include "sluice/io/task/when_all.hpp"

namespace sluice::io {
namespace {

class cancellation : public coroutine_test {};

task<std::tuple<int, int>> join(task<int> a, task<int> b) {
    co_return co_await when_all(std::move(a), std::move(b));
}

task<void> cancel_when_written(pipe_handle& from, cancel_scope& scope) {
    const int code = co_await read_one(from);
    EXPECT_EQ(code, 0);
    scope.cancel();
}

TEST_P(cancellation, cancelling_a_scope_ends_the_read_that_waits_in_it) {
    auto pipe = make_pipe();
    auto trigger = make_pipe();
    cancel_scope scope;
    const auto both = [](pipe_handle& reader, pipe_handle& canceller, cancel_scope& within) -> task<int> {
        auto [code, none] =
            co_await when_all(in_scope(within, read_one(reader)), cancel_when_written(canceller, within));
        (void)none;
        co_return code;
    };
    ASSERT_TRUE(write_one(trigger.writer).has_value());
    EXPECT_EQ(run(both(pipe.reader, trigger.reader, scope)), ECANCELED);
    EXPECT_TRUE(scope.has_cut_short());
    EXPECT_EQ(multiplexer_->pending(), 0U);
}

TEST_P(cancellation, an_operation_begun_in_a_cancelled_scope_fails_without_touching_the_handle) {
    auto pipe = make_pipe();
    ASSERT_TRUE(write_one(pipe.writer).has_value());
    cancel_scope scope;
    scope.cancel();
    EXPECT_FALSE(scope.has_cut_short());
    EXPECT_EQ(run(in_scope(scope, read_one(pipe.reader))), ECANCELED);
    EXPECT_TRUE(scope.has_cut_short());
    EXPECT_EQ(run(read_one(pipe.reader)), 0) << "the byte is still there";
}

task<int> read_below(pipe_handle& from, int levels) {
    if (levels == 0) {
        const int code = co_await read_one(from);
        co_return code;
    }
    const int below = co_await read_below(from, levels - 1);
    co_return below;
}

TEST_P(cancellation, the_scope_of_a_task_is_that_of_everything_it_awaits) {
    auto pipe = make_pipe();
    cancel_scope scope;
    ASSERT_TRUE(multiplexer_->post([&scope]() noexcept { scope.cancel(); }).has_value());
    EXPECT_EQ(run(in_scope(scope, read_below(pipe.reader, 100))), ECANCELED);
}

TEST_P(cancellation, a_nested_scope_is_cancelled_with_the_one_around_it_but_not_the_reverse) {
    auto outer_pipe = make_pipe();
    auto inner_pipe = make_pipe();
    cancel_scope outer, inner;
    inner.nest_in(outer);
    ASSERT_TRUE(multiplexer_
                    ->post([&]() noexcept {
                        inner.cancel();
                        EXPECT_FALSE(outer.is_cancelled());
                        EXPECT_TRUE(write_one(outer_pipe.writer).has_value());
                    })
                    .has_value());
    EXPECT_EQ(
        run(join(in_scope(outer, read_one(outer_pipe.reader)), in_scope(inner, read_one(inner_pipe.reader)))),
        std::tuple(0, ECANCELED));

    cancel_scope second;
    second.nest_in(outer);
    ASSERT_TRUE(multiplexer_->post([&]() noexcept { outer.cancel(); }).has_value());
    EXPECT_EQ(run(in_scope(second, read_one(inner_pipe.reader))), ECANCELED);
}

TEST_P(cancellation, a_scope_nested_in_a_cancelled_one_is_cancelled) {
    cancel_scope outer, inner;
    outer.cancel();
    inner.nest_in(outer);
    EXPECT_TRUE(inner.is_cancelled());
}

TEST_P(cancellation, scopes_nested_very_deep_are_cancelled_without_recursion) {
    std::vector<std::unique_ptr<cancel_scope>> scopes;
    scopes.push_back(std::make_unique<cancel_scope>());
    for (int i = 0; i < 1000; ++i) {
        scopes.push_back(std::make_unique<cancel_scope>());
        scopes.back()->nest_in(*scopes[scopes.size() - 2]);
    }
    scopes.front()->cancel();
    EXPECT_TRUE(scopes.back()->is_cancelled());
}

TEST_P(cancellation, a_scope_that_is_destroyed_detaches_one_nested_in_it) {
    cancel_scope inner;
    {
        cancel_scope outer;
        inner.nest_in(outer);
    }
    inner.cancel();
    EXPECT_TRUE(inner.is_cancelled());
}

// Both reads are complete before either coroutine resumes; the first to resume cancels the other.
TEST_P(cancellation, a_read_that_was_faster_than_the_cancellation_keeps_its_outcome) {
    auto first_pipe = make_pipe();
    auto second_pipe = make_pipe();
    cancel_scope scope;
    const auto cancelling_read = [](pipe_handle& from, cancel_scope& other) -> task<int> {
        const int code = co_await read_one(from);
        other.cancel();
        co_return code;
    };
    ASSERT_TRUE(multiplexer_
                    ->post([&]() noexcept {
                        EXPECT_TRUE(write_one(first_pipe.writer).has_value());
                        EXPECT_TRUE(write_one(second_pipe.writer).has_value());
                    })
                    .has_value());
    EXPECT_EQ(
        run(join(cancelling_read(first_pipe.reader, scope), in_scope(scope, read_one(second_pipe.reader)))),
        std::tuple(0, 0));
    EXPECT_FALSE(scope.has_cut_short());
}

TEST_P(cancellation, an_uncancelled_task_does_io_in_a_cancelled_scope) {
    auto pipe = make_pipe();
    const auto close_politely = [](pipe_handle::pair& ends) -> task<std::array<int, 2>> {
        const int cut = co_await read_one(ends.reader);
        const auto say_goodbye = [](pipe_handle::pair& to) -> task<int> {
            std::array<std::byte, 1> one{};
            const auto wrote = co_await co_write(to.writer, io_request<const_bytes_type>{one});
            EXPECT_EQ(wrote.bytes_transferred(), 1U);
            co_return co_await read_one(to.reader);
        };
        const int goodbye = co_await uncancelled(say_goodbye(ends));
        co_return std::array{cut, goodbye};
    };
    cancel_scope scope;
    ASSERT_TRUE(multiplexer_->post([&scope]() noexcept { scope.cancel(); }).has_value());
    EXPECT_EQ(run(in_scope(scope, close_politely(pipe))), (std::array{ECANCELED, 0}));
}

TEST_P(cancellation, a_task_can_query_the_scope_it_runs_in) {
    const auto ask = []() -> task<cancel_scope*> { co_return co_await current_scope; };
    cancel_scope scope;
    EXPECT_EQ(run(in_scope(scope, ask())), &scope);
    EXPECT_EQ(run(ask()), nullptr);
    EXPECT_EQ(run(uncancelled(ask())), nullptr);
}

TEST_P(cancellation, an_operation_without_a_handle_fails_and_leaves_the_scope_usable) {
    auto pipe = make_pipe();
    cancel_scope scope;
    const auto work = [&]() -> task<int> {
        (void)co_await co_sleep(*multiplexer_, std::chrono::milliseconds(0));
        const auto refused = co_await transfer_sender<bytes_type>();
        EXPECT_TRUE(write_one(pipe.writer).has_value());
        const int code = co_await read_one(pipe.reader);
        co_return refused ? -1 : refused.error().code() + code;
    };
    EXPECT_EQ(run(in_scope(scope, work())), EBADF);
    const auto first = [&]() -> task<int> {
        const auto refused = co_await transfer_sender<bytes_type>();
        (void)co_await co_sleep(*multiplexer_, std::chrono::milliseconds(1));
        co_return refused ? -1 : refused.error().code();
    };
    cancel_scope other;
    EXPECT_EQ(run(in_scope(other, first())), EBADF);
}

TEST_P(cancellation, a_scope_with_io_of_two_multiplexers_stops_the_program) {
    EXPECT_DEATH(
        {
            auto pipe = make_pipe();
            auto other = GetParam().make().value();
            auto elsewhere = pipe_handle::anonymous().value();
            EXPECT_TRUE(elsewhere.reader.set_multiplexer(other.get()).has_value());
            cancel_scope scope;
            (void)run(in_scope(scope, join(read_one(pipe.reader), read_one(elsewhere.reader))));
        },
        "a cancel scope belongs to one multiplexer");
}

SLUICE_TEST_COROUTINES_OVER_ALL(cancellation);

}  // namespace
}  // namespace sluice::io
