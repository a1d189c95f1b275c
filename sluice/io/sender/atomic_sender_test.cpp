#include "sluice/io/sender/atomic_sender.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "sluice/io/best_available.hpp"
#include "sluice/io/stream/pipe_handle.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> text(std::string_view s) {
    return std::as_bytes(std::span(s));
}

struct seen {
    int values = 0;
    int dones = 0;
    io_result<bytes_type> last = bytes_type{};
};

struct recorder {
    seen* into;
    void set_value(io_result<bytes_type>&& outcome) noexcept {
        ++into->values;
        into->last = std::move(outcome);
    }
    void set_done() noexcept { ++into->dones; }
};

class atomic_sender_test : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(ends.reader.set_multiplexer(multiplexer.get()).has_value());
        (void)multiplexer->try_run();  // this thread owns it from now on
    }

    auto read() {
        return connect(atomic_async_read(ends.reader, io_request<bytes_type>{into}), recorder{&outcome});
    }

    std::unique_ptr<io_multiplexer> multiplexer = best_available(1, 0).value();
    pipe_handle::pair ends = pipe_handle::anonymous().value();
    std::array<std::byte, 16> into{};
    seen outcome;
};

TEST_F(atomic_sender_test, on_the_owning_thread_a_start_is_direct) {
    ASSERT_TRUE(ends.writer.write({.buffers = text("hi")}).has_value());
    auto state = read();
    EXPECT_FALSE(state.started());
    state.start(initiation::speculative);
    EXPECT_TRUE(state.completed());
    EXPECT_FALSE(state.started());
    EXPECT_EQ(outcome.dones, 1);
    EXPECT_EQ(outcome.last.bytes_transferred(), 2U);
}

TEST_F(atomic_sender_test, a_second_start_while_pending_does_not_win) {
    auto state = read();
    EXPECT_TRUE(state.try_start());
    EXPECT_FALSE(state.try_start());
    EXPECT_TRUE(state.started());
    EXPECT_FALSE(state.completed());
    EXPECT_DEATH(state.start(), "started while pending");
    state.cancel();
    EXPECT_GT(multiplexer->run().value_or(0), 0);
    EXPECT_EQ(outcome.last.error(), std::errc::operation_canceled);
    EXPECT_EQ(outcome.values, 1);
    EXPECT_EQ(outcome.dones, 1);
}

TEST_F(atomic_sender_test, it_can_be_moved_before_the_start_and_started_again_after_done) {
    auto first = read();
    auto state = std::move(first);
    for (int round = 1; round <= 3; ++round) {
        state.start();
        EXPECT_FALSE(state.poll());
        ASSERT_TRUE(ends.writer.write({.buffers = text("again")}).has_value());
        while (not state.poll()) {}
        EXPECT_EQ(outcome.dones, round);
        EXPECT_EQ(outcome.last.bytes_transferred(), 5U);
    }
}

TEST_F(atomic_sender_test, cancelled_between_claim_and_launch_it_does_no_io) {
    ASSERT_TRUE(ends.writer.write({.buffers = text("kept")}).has_value());
    auto state = read();
    ASSERT_TRUE(state.claim());
    state.cancel();
    state.launch();
    EXPECT_EQ(outcome.last.error(), std::errc::operation_canceled);
    EXPECT_EQ(outcome.dones, 1);
    EXPECT_EQ(ends.reader.try_read(io_request<bytes_type>{into}).bytes_transferred(), 4U);
}

TEST_F(atomic_sender_test, a_cancel_before_the_start_has_no_effect) {
    auto state = read();
    state.cancel();
    state.start();
    EXPECT_TRUE(state.started());
    ASSERT_TRUE(ends.writer.write({.buffers = text("x")}).has_value());
    EXPECT_GT(multiplexer->run().value_or(0), 0);
    EXPECT_EQ(outcome.last.bytes_transferred(), 1U);
    state.cancel();
    EXPECT_EQ(outcome.dones, 1);
}

TEST_F(atomic_sender_test, the_receiver_may_destroy_the_state_while_it_is_polled) {
    using read_sender = decltype(async_read(ends.reader, io_request<bytes_type>{}));
    struct receiver {
        void set_value(io_result<bytes_type>&&) noexcept {}
        void set_done() noexcept { destroy(); }
        void (*destroy)() noexcept;
    };
    using connection = atomic_io_operation_connection<read_sender, receiver>;
    static std::unique_ptr<connection> state;
    state = std::make_unique<connection>(async_read(ends.reader, io_request<bytes_type>{into}),
                                         receiver{[]() noexcept { state.reset(); }});
    state->start();
    ASSERT_TRUE(ends.writer.write({.buffers = text("x")}).has_value());
    while (state != nullptr and not state->poll()) {}
    EXPECT_EQ(state, nullptr);
}

TEST_F(atomic_sender_test, writes_barriers_and_readiness_have_atomic_forms) {
    ASSERT_TRUE(ends.writer.set_multiplexer(multiplexer.get()).has_value());
    int dones = 0;
    struct counter {
        int* dones;
        void set_value(io_result<const_bytes_type>&& r) noexcept { EXPECT_EQ(r.bytes_transferred(), 3U); }
        void set_value(io_result<const_buffers_type>&& r) noexcept { EXPECT_TRUE(r.has_value()); }
        void set_value(result<void>&& r) noexcept { EXPECT_TRUE(r.has_value()); }
        void set_done() noexcept { ++*dones; }
    };
    auto write =
        connect(atomic_async_write(ends.writer, io_request<const_bytes_type>{text("abc")}), counter{&dones});
    write.start();
    auto barrier = connect(atomic_async_barrier(ends.writer), counter{&dones});
    barrier.start();
    auto ready = connect(atomic(async_ready(ends.reader, direction::in)), counter{&dones});
    ready.start();
    auto sleep = connect(atomic(async_sleep(*multiplexer, 1ms)), counter{&dones});
    sleep.start();
    while (multiplexer->run().value_or(0) > 0) {}
    EXPECT_EQ(dones, 4);
}

}  // namespace
}  // namespace sluice::io
