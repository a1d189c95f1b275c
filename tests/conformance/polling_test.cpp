#include <array>
#include <deque>
#include <memory>
#include <optional>

#include "sluice/io/sender/atomic_sender.hpp"
#include "tests/conformance/harness.hpp"

// poll(): the operations that it signals, the rights of its receiver, and its result.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

class polling : public on_every_back_end {
protected:
    [[nodiscard]] std::deque<stream_read> start_reads(std::size_t count) const {
        auto all = with_multiplexer::start_reads(count, medium::unix_pair);
        run_briefly();
        return all;
    }
    static void make_ready(io_handle& writer) {
        ASSERT_TRUE(writer.write(io_request<const_bytes_type>{text("x")}).has_value());
    }
    // A simulation delays ready operations, and a ring reports them only on request. The state may
    // be destroyed when its poll returns true.
    template <class State>
    [[nodiscard]] bool poll_until_complete(State& state) const {
        const auto begun = multiplexer().now();
        while (not state.poll())
            if (multiplexer().now() - begun > 20s) return false;
        return true;
    }
};
INSTANTIATE_TEST_SUITE_P(conformance, polling, every_back_end(), name_of_back_end);

TEST_P(polling, signals_no_other_operation) {
    auto all = start_reads(5);
    for (auto& each : all)
        make_ready(each.ends.writer);
    EXPECT_TRUE(poll_until_complete(all[2].read->state));
    for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].read->is.values, i == 2 ? 1 : 0) << i;
        EXPECT_EQ(all[i].read->is.dones, i == 2 ? 1 : 0) << i;
    }
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    for (auto& each : all)
        EXPECT_TRUE(succeeded(each.read->is, 1));
}

TEST_P(polling, signals_nothing_before_the_operation_is_ready) {
    auto all = start_reads(3);
    make_ready(all[0].ends.writer);
    for (int i = 0; i < 20; ++i)
        EXPECT_FALSE(all[1].read->state.poll());
    EXPECT_EQ(all[0].read->is.values, 0) << "its own poll, or the loop, signals it";
    for (auto& each : all)
        each.read->state.cancel();
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
}

TEST_P(polling, signals_no_other_operation_on_a_file) {
    auto file = open_file(place::device);
    attach(file);
    std::array<std::byte, 64> bytes{};
    tracked_write first(writing(file, bytes, 0));
    tracked_write second(writing(file, bytes, 64));
    first.state.start(initiation::batched);
    second.state.start(initiation::batched);
    EXPECT_TRUE(poll_until_complete(second.state));
    EXPECT_TRUE(succeeded(second.is, 64));
    EXPECT_EQ(first.is.values, 0);
    EXPECT_TRUE(poll_until_complete(first.state));
    EXPECT_TRUE(succeeded(first.is, 64));
}

// P2052R0 5.3: after set_done nothing of the library touches the state.
TEST_P(polling, lets_the_receiver_destroy_the_state) {
    using plain_read = io_operation_connection<transfer_sender<bytes_type>, recording_receiver>;
    auto ends = open_stream(medium::pipe);
    attach(ends.reader);
    std::array<std::byte, 1> into{};
    signal_record is;
    auto state = std::make_unique<plain_read>(reading(ends.reader, into), recording_receiver{&is});
    is.on_done = [&] { state.reset(); };
    state->start();
    make_ready(ends.writer);
    EXPECT_TRUE(poll_until_complete(*state));
    EXPECT_EQ(state, nullptr);
    EXPECT_TRUE(succeeded(is, 1));
}

TEST_P(polling, lets_the_receiver_start_the_state_again) {
    auto all = start_reads(1);
    tracked_read& read = *all[0].read;
    int starts = 1;
    read.is.on_done = [&] {
        if (++starts <= 3) read.state.start();
    };
    for (int i = 1; i <= 3; ++i) {
        make_ready(all[0].ends.writer);
        EXPECT_TRUE(poll_until_complete(read.state)) << "the answer is about the start that was polled";
        EXPECT_EQ(read.is.dones, i);
        EXPECT_EQ(read.state.started(), i < 3);
    }
}

TEST_P(polling, signals_once_per_call_if_the_receiver_restarts_a_ready_operation) {
    auto ends = open_stream(medium::pipe);
    attach(ends.writer);
    tracked ready(async_ready(ends.writer, direction::out));
    int starts = 1;
    ready.is.on_done = [&] {
        if (++starts <= 4) ready.state.start(initiation::speculative);
    };
    ready.state.start(initiation::batched);
    for (int i = ready.is.dones + 1; i <= 4; ++i) {
        EXPECT_TRUE(poll_until_complete(ready.state));
        EXPECT_EQ(ready.is.dones, i);
    }
}

TEST_P(polling, lets_the_receiver_destroy_a_state_that_threads_share) {
    auto ends = open_stream(medium::pipe);
    attach(ends.reader);
    std::array<std::byte, 1> into{};
    signal_record is;
    using shared_read = atomic_io_operation_connection<transfer_sender<bytes_type>, recording_receiver>;
    std::optional<shared_read> state(std::in_place, reading(ends.reader, into), recording_receiver{&is});
    is.on_done = [&] { state.reset(); };
    (void)multiplexer().complete_io();  // this thread owns it
    state->start();
    make_ready(ends.writer);
    EXPECT_TRUE(poll_until_complete(*state));
    EXPECT_FALSE(state.has_value());
    EXPECT_TRUE(succeeded(is, 1));
}

}  // namespace
}  // namespace sluice::io::conformance
