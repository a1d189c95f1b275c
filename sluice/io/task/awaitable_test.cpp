#include "sluice/io/task/awaitable.hpp"

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/task/coroutine_testing.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;

class awaitable : public coroutine_test {
protected:
    void write_text(std::string_view s) {
        ASSERT_EQ(pipe_.writer.write({.buffers = std::as_bytes(std::span(s))}).bytes_transferred(), s.size());
    }

    pipe_handle::pair pipe_ = make_pipe();
    std::array<std::byte, 64> into_{};
};

// A coroutine type that is independent of the library.
struct detached {
    struct promise_type {
        static detached get_return_object() noexcept { return {}; }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static std::suspend_never final_suspend() noexcept { return {}; }
        static void return_void() noexcept {}
        static void unhandled_exception() noexcept { std::abort(); }
    };
};

detached read_into(pipe_handle& from, bytes_type into, std::size_t& got) {
    const auto read = co_await co_read(from, io_request<bytes_type>{into});
    got = read.bytes_transferred();
}

TEST_P(awaitable, a_read_that_completes_at_once_does_not_suspend) {
    write_text("now");
    std::size_t got = 0;
    read_into(pipe_.reader, into_, got);
    EXPECT_EQ(got, 3U);
    EXPECT_EQ(multiplexer_->pending(), 0U);
}

TEST_P(awaitable, a_read_that_must_wait_resumes_its_coroutine_from_the_loop) {
    std::size_t got = 99;
    read_into(pipe_.reader, into_, got);
    EXPECT_EQ(got, 99U);
    EXPECT_EQ(multiplexer_->pending(), 1U);
    write_text("later");
    EXPECT_EQ(got, 99U) << "nothing advances outside the loop";
    while (multiplexer_->run().value_or(0) > 0) {}
    EXPECT_EQ(got, 5U);
}

detached read_repeatedly(pipe_handle& from, int& rounds) {
    std::array<std::byte, 1> one{};
    for (;;) {
        const auto read = co_await co_read(from, io_request<bytes_type>{one});
        if (read.bytes_transferred() == 0) co_return;
        ++rounds;
    }
}

TEST_P(awaitable, a_handle_that_is_always_ready_yields_to_others_after_the_budget) {
    for (int i = 0; i < 4 * limits::inline_completions_max; ++i)
        write_text("x");
    int rounds = 0;
    read_repeatedly(pipe_.reader, rounds);
    EXPECT_EQ(rounds, limits::inline_completions_max);
    EXPECT_EQ(multiplexer_->pending(), 1U);
    ASSERT_TRUE(pipe_.writer.close().has_value());
    while (multiplexer_->run().value_or(0) > 0) {}
    EXPECT_EQ(rounds, 4 * limits::inline_completions_max);
}

TEST_P(awaitable, a_read_ends_at_its_deadline) {
    const auto read_cancelled = [](pipe_handle& from, bytes_type into) -> task<io_result<bytes_type>> {
        co_return co_await co_read(from, io_request<bytes_type>{into}, 5ms);
    };
    const auto read = sync_wait(*multiplexer_, read_cancelled(pipe_.reader, into_));
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error(), std::errc::timed_out);
}

TEST_P(awaitable, a_list_of_buffers_is_written_and_read_in_order) {
    const auto round_trip = [](pipe_handle::pair& pipe) -> task<std::string> {
        constexpr std::string_view first = "gather ", second = "and scatter";
        std::array<const_buffer, 2> out{std::as_bytes(std::span(first)), std::as_bytes(std::span(second))};
        const auto wrote = co_await co_write(pipe.writer, io_request<const_buffers_type>{out});
        EXPECT_EQ(wrote.bytes_transferred(), first.size() + second.size());
        std::string text(18, ' ');
        const auto bytes = std::as_writable_bytes(std::span(text));
        std::array<buffer, 2> in{bytes.first(3), bytes.subspan(3)};
        const auto read = co_await co_read(pipe.reader, io_request<buffers_type>{in});
        EXPECT_EQ(read.bytes_transferred(), 18U);
        co_return text;
    };
    EXPECT_EQ(sync_wait(*multiplexer_, round_trip(pipe_)), "gather and scatter");
}

TEST_P(awaitable, readiness_is_waited_for_without_reading) {
    const auto wait_then_read = [](pipe_handle::pair& pipe, bytes_type into) -> task<std::size_t> {
        const auto writable = co_await co_ready(pipe.writer, direction::out);
        EXPECT_TRUE(writable.has_value());
        const auto too_early = co_await co_ready(pipe.reader, direction::in, 1ms);
        EXPECT_EQ(too_early.error(), std::errc::timed_out);
        constexpr std::string_view text = "ready";
        const auto wrote =
            co_await co_write(pipe.writer, io_request<const_bytes_type>{std::as_bytes(std::span(text))});
        EXPECT_TRUE(wrote.has_value());
        const auto readable = co_await co_ready(pipe.reader, direction::in);
        EXPECT_TRUE(readable.has_value());
        const auto read = co_await co_read(pipe.reader, io_request<bytes_type>{into});
        co_return read.bytes_transferred();
    };
    EXPECT_EQ(sync_wait(*multiplexer_, wait_then_read(pipe_, into_)), 5U);
}

TEST_P(awaitable, a_barrier_on_a_pipe_has_nothing_to_do) {
    const auto barrier = [](pipe_handle& pipe) -> task<bool> {
        const auto done = co_await co_barrier(pipe);
        co_return done.has_value();
    };
    EXPECT_TRUE(sync_wait(*multiplexer_, barrier(pipe_.writer)));
}

TEST_P(awaitable, a_sleep_lasts_at_least_as_long_as_requested) {
    const auto nap = [](io_multiplexer& multiplexer) -> task<bool> {
        const auto slept = co_await co_sleep(multiplexer, 3ms);
        co_return slept.has_value();
    };
    const auto before = multiplexer_->now();
    EXPECT_TRUE(sync_wait(*multiplexer_, nap(*multiplexer_)));
    EXPECT_GE(multiplexer_->now() - before, 3ms);
}

TEST_P(awaitable, a_sender_kept_in_a_variable_can_be_awaited_again) {
    write_text("ab");
    const auto read_twice = [](pipe_handle& from, bytes_type into) -> task<std::size_t> {
        auto one_byte = async_read(from, io_request<bytes_type>{into.first(1)});
        const auto first = co_await one_byte;
        const auto second = co_await one_byte;
        co_return first.bytes_transferred() + second.bytes_transferred();
    };
    EXPECT_EQ(sync_wait(*multiplexer_, read_twice(pipe_.reader, into_)), 2U);
}

TEST_P(awaitable, the_await_returns_an_error) {
    const auto write_to_nobody = [](pipe_handle& to) -> task<int> {
        constexpr std::string_view text = "x";
        const auto wrote =
            co_await co_write(to, io_request<const_bytes_type>{std::as_bytes(std::span(text))});
        co_return wrote.has_value() ? 0 : wrote.error().code();
    };
    std::signal(SIGPIPE, SIG_IGN);
    ASSERT_TRUE(pipe_.reader.close().has_value());
    EXPECT_EQ(sync_wait(*multiplexer_, write_to_nobody(pipe_.writer)), EPIPE);
}

SLUICE_TEST_COROUTINES_OVER_ALL(awaitable);

}  // namespace
}  // namespace sluice::io
