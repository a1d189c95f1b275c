#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "tests/conformance/harness.hpp"

// The signals of a receiver, their order and number: `operation`, "Lifetime rules", and
// receiver_of.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

class signals : public on_every_stream {
protected:
    std::array<std::byte, 64> into{};
};
INSTANTIATE_TEST_SUITE_P(conformance, signals, every_stream(), name_of_stream);

TEST_P(signals, come_once_each_value_first_on_success) {
    auto ends = attached_stream();
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    EXPECT_TRUE(read.state.started());
    EXPECT_FALSE(read.state.completed());
    ASSERT_EQ(ends.writer.write(io_request<const_bytes_type>{text("hello")}).bytes_transferred(), 5U);
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_TRUE(has_read(read.is, 5));
    EXPECT_FALSE(read.state.started());
    EXPECT_TRUE(read.state.completed());
    run_briefly();
    EXPECT_TRUE(has_read(read.is, 5)) << "signalled again later";
    EXPECT_EQ(multiplexer().pending(), 0U);
}

TEST_P(signals, come_once_each_value_first_on_error) {
    auto ends = attached_stream();
    ASSERT_TRUE(ends.reader.close().has_value());
    const std::vector<std::byte> much(1 << 20);
    // TCP accepts one write before it detects that the peer is gone, and answers the first with
    // ECONNRESET.
    for (int i = 0; i < 2; ++i) {
        tracked_write write(writing(ends.writer, much));
        write.state.start();
        ASSERT_TRUE(run_until_done(write.is));
        EXPECT_EQ(write.is.values, 1);
        EXPECT_TRUE(write.is.in_order);
        if (i == 1) EXPECT_TRUE(failed(write.is, EPIPE));
    }
    EXPECT_EQ(multiplexer().pending(), 0U);
}

TEST_P(signals, come_once_each_value_first_at_the_deadline) {
    auto ends = attached_stream();
    tracked_read read(reading(ends.reader, into, 0, 5ms));
    const auto before = multiplexer().now();
    read.state.start();
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_GE(multiplexer().now() - before, 5ms);
    EXPECT_TRUE(failed(read.is, ETIMEDOUT));
    run_briefly();
    EXPECT_TRUE(failed(read.is, ETIMEDOUT));
}

TEST_P(signals, come_once_each_value_first_when_cancelled_before_the_system_call) {
    auto ends = attached_stream();
    tracked_read read(reading(ends.reader, into));
    read.state.start(initiation::batched);
    read.state.cancel();
    EXPECT_EQ(read.is.values, 0) << "signals come from the loop, not from cancel()";
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_TRUE(failed(read.is, ECANCELED));
}

TEST_P(signals, come_once_each_value_first_when_cancelled_in_flight) {
    auto ends = attached_stream();
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    run_briefly();
    EXPECT_TRUE(read.state.started());
    read.state.cancel();
    read.state.cancel();  // a second call has no effect
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_TRUE(failed(read.is, ECANCELED));
}

TEST_P(signals, are_not_changed_by_a_cancel_after_completion) {
    auto ends = attached_stream();
    (void)ends.writer.write(io_request<const_bytes_type>{text("hello")});
    tracked_read read(reading(ends.reader, into));
    read.is.on_value = [&] { read.state.cancel(); };
    read.state.start();
    ASSERT_TRUE(run_until_done(read.is));
    read.state.cancel();
    run_briefly();
    EXPECT_TRUE(has_read(read.is, 5));
}

TEST_P(signals, leave_the_stream_usable_after_a_cancelled_operation) {
    auto ends = attached_stream();
    tracked_read first(reading(ends.reader, into));
    first.state.start();
    run_briefly();
    first.state.cancel();
    ASSERT_TRUE(run_until_done(first.is));
    tracked_read second(reading(ends.reader, into));
    second.state.start();
    (void)ends.writer.write(io_request<const_bytes_type>{text("after")});
    ASSERT_TRUE(run_until_done(second.is));
    EXPECT_TRUE(has_read(second.is, 5)) << "the cancelled read must not have taken the bytes";
}

TEST_P(signals, let_the_receiver_start_the_operation_again_from_done) {
    auto ends = attached_stream();
    tracked_read read(reading(ends.reader, std::span(into).first(1)));
    std::string got;
    read.is.on_value = [&] { got.push_back(static_cast<char>(into[0])); };
    read.is.on_done = [&] {
        if (read.is.dones < 5) read.state.start();
    };
    read.state.start();
    (void)ends.writer.write(io_request<const_bytes_type>{text("abcde")});
    ASSERT_TRUE(run_until([&] { return read.is.dones == 5; }));
    EXPECT_EQ(got, "abcde");
    EXPECT_TRUE(read.is.in_order);
    EXPECT_EQ(read.is.values, 5);
    EXPECT_EQ(multiplexer().pending(), 0U);
}

TEST_P(signals, let_the_receiver_destroy_the_operation_from_done) {
    auto ends = attached_stream();
    for (const bool ready_at_once : {true, false}) {
        auto read = std::make_unique<tracked_read>(reading(ends.reader, into));
        bool destroyed = false;
        std::function<void()> destroy = [&] {
            auto gone = std::move(read->is.on_done);  // the running closure must outlive the object
                                                      // that it destroys
            read.reset();
            destroyed = true;
        };
        read->is.on_done = [&] { destroy(); };
        if (ready_at_once) (void)ends.writer.write(io_request<const_bytes_type>{text("x")});
        read->state.start();
        if (not ready_at_once) {
            run_briefly();
            (void)ends.writer.write(io_request<const_bytes_type>{text("x")});
        }
        ASSERT_TRUE(run_until([&] { return destroyed; }));
        run_briefly();
    }
    EXPECT_EQ(multiplexer().pending(), 0U);
}

TEST_P(signals, may_start_other_operations_without_stack_growth) {
    auto ends = attached_stream();
    const int chained = rounds(kind() == medium::tcp_pair ? 10'000 : 100'000);
    const auto* const outermost = static_cast<const char*>(__builtin_frame_address(0));
    std::ptrdiff_t deepest = 0;
    const auto look = [&] {
        deepest = std::max(deepest, outermost - static_cast<const char*>(__builtin_frame_address(0)));
    };
    std::byte one{};
    tracked_read read(reading(ends.reader, {&one, 1}));
    tracked_write write(writing(ends.writer, {&one, 1}));
    // Each starts the other from its first signal, while it is not done itself, and again from its
    // second.
    read.is.on_done = [&] {
        look();
        if (read.is.dones < chained) write.state.start();
    };
    write.is.on_done = [&] {
        look();
        read.state.start(initiation::speculative);
    };
    write.state.start();
    ASSERT_TRUE(run_until([&] { return read.is.dones == chained; }));
    EXPECT_TRUE(read.is.in_order);
    EXPECT_TRUE(write.is.in_order);
    EXPECT_LT(deepest, 64 * 1024);
}

TEST_P(signals, are_not_nested) {
    auto ends = attached_stream();
    (void)ends.writer.write(io_request<const_bytes_type>{text("ab")});
    tracked_read first(reading(ends.reader, std::span(into).first(1)));
    tracked_read second(reading(ends.reader, std::span(into).subspan(1, 1)));
    first.is.on_value = [&] {
        second.state.start(initiation::speculative);
        EXPECT_EQ(second.is.values, 0);
        (void)second.state.poll();
        EXPECT_EQ(second.is.values, 0) << "a receiver runs inside another";
    };
    first.state.start();
    ASSERT_TRUE(run_until([&] { return second.is.dones == 1; }));
    EXPECT_TRUE(succeeded(first.is, 1));
    EXPECT_TRUE(succeeded(second.is, 1));
}

TEST_P(signals, come_from_poll_for_the_polled_operation) {
    auto ends = attached_stream();
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    EXPECT_FALSE(read.state.poll());
    EXPECT_EQ(read.is.values, 0);
    (void)ends.writer.write(io_request<const_bytes_type>{text("hello")});
    for (int i = 0; i < 1'000'000 and not read.state.poll(); ++i) {}
    EXPECT_TRUE(has_read(read.is, 5));
    EXPECT_TRUE(read.state.poll()) << "stays complete until it is started again";
    EXPECT_TRUE(has_read(read.is, 5));
}

TEST_P(signals, report_a_timeout_from_poll_at_the_deadline) {
    auto ends = attached_stream();
    tracked_read read(reading(ends.reader, into, 0, 2ms));
    read.state.start();
    while (not read.state.poll()) {}
    EXPECT_TRUE(failed(read.is, ETIMEDOUT));
}

TEST_P(signals, follow_an_operation_that_was_moved_before_its_start) {
    auto ends = attached_stream();
    signal_record is;
    auto made = connect(reading(ends.reader, into), recording_receiver{&is});
    auto moved = std::move(made);
    moved.start();
    (void)ends.writer.write(io_request<const_bytes_type>{text("hello")});
    ASSERT_TRUE(run_until_done(is));
    EXPECT_TRUE(has_read(is, 5));
    EXPECT_EQ(std::memcmp(into.data(), "hello", is.bytes), 0);
}

TEST_P(signals, come_for_each_of_many_operations_cancelled_in_any_order) {
    auto ends = attached_stream();
    std::vector<std::unique_ptr<tracked_read>> reads;
    for (int i = 0; i < 100; ++i) {
        reads.push_back(std::make_unique<tracked_read>(reading(ends.reader, into)));
        reads.back()->state.start();
        if (i == 50) run_briefly();
    }
    for (std::size_t i = 0; i < reads.size(); ++i)
        reads[i * 37 % reads.size()]->state.cancel();
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    for (auto& read : reads)
        EXPECT_TRUE(failed(read->is, ECANCELED));
}

TEST_P(signals, come_for_the_next_operation_although_the_previous_one_is_cancelled_from_its_own_signal) {
    auto ends = attached_stream();
    tracked_read first(reading(ends.reader, std::span(into).first(1)));
    tracked_read second(reading(ends.reader, std::span(into).first(1)));
    tracked_read third(reading(ends.reader, std::span(into).first(1)));
    first.is.on_value = [&] { second.state.cancel(); };
    first.state.start(initiation::batched);
    second.state.start(initiation::batched);
    third.state.start(initiation::batched);
    (void)ends.writer.write(io_request<const_bytes_type>{text("a")});
    ASSERT_TRUE(run_until([&] { return second.is.dones == 1; }));
    EXPECT_TRUE(succeeded(first.is, 1));
    EXPECT_TRUE(failed(second.is, ECANCELED));
    (void)ends.writer.write(io_request<const_bytes_type>{text("b")});
    ASSERT_TRUE(run_until_done(third.is));
    EXPECT_TRUE(succeeded(third.is, 1));
}

}  // namespace
}  // namespace sluice::io::conformance
