#include <array>
#include <memory>

#include "tests/conformance/harness.hpp"

// When operations time out, and the results of timeout_io; sleeps.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;

class deadlines : public on_every_back_end {
protected:
    deadlines() : pipe(open_stream(medium::pipe)) {
        attach(pipe.reader);
        attach(pipe.writer);
    }
    using sleep = tracked<sleep_sender>;

    stream_ends pipe;
    std::array<std::byte, 8> into{};
};
INSTANTIATE_TEST_SUITE_P(conformance, deadlines, every_back_end(), name_of_back_end);

TEST_P(deadlines, fail_inside_start_if_they_are_zero) {
    for (const auto how : {initiation::automatic, initiation::speculative, initiation::batched}) {
        tracked_read read(reading(pipe.reader, into, 0, deadline::zero()));
        read.state.start(how);
        EXPECT_TRUE(failed(read.is, ETIMEDOUT));
    }
    EXPECT_EQ(multiplexer().pending(), 0U);
}

TEST_P(deadlines, succeed_at_zero_if_the_operation_need_not_wait) {
    for (const auto how : {initiation::automatic, initiation::speculative, initiation::batched}) {
        ASSERT_TRUE(pipe.writer.write(io_request<const_bytes_type>{text("x")}).has_value());
        tracked_read read(reading(pipe.reader, into, 0, deadline::zero()));
        read.state.start(how);
        EXPECT_TRUE(succeeded(read.is, 1));
    }
}

TEST_P(deadlines, do_not_overtake_an_older_request_if_they_are_zero) {
    tracked_read older(reading(pipe.reader, into));
    older.state.start(initiation::batched);
    ASSERT_TRUE(pipe.writer.write(io_request<const_bytes_type>{text("x")}).has_value());
    tracked_read hasty(reading(pipe.reader, into, 0, deadline::zero()));
    hasty.state.start();
    EXPECT_TRUE(failed(hasty.is, ETIMEDOUT));
    ASSERT_TRUE(run_until_done(older.is));
    EXPECT_TRUE(succeeded(older.is, 1));
}

TEST_P(deadlines, report_the_written_part_if_they_are_zero) {
    const std::vector<std::byte> much(1 << 20);
    tracked_write write(writing(pipe.writer, much, 0, deadline::zero()));
    write.state.start();
    ASSERT_TRUE(run_until_done(write.is));
    EXPECT_EQ(write.is.code, 0);
    EXPECT_GT(write.is.bytes, 0U);
    EXPECT_LT(write.is.bytes, much.size());
    EXPECT_EQ(drain(pipe.reader).size(), write.is.bytes);
}

TEST_P(deadlines, may_be_relative_or_points_of_either_clock) {
    const auto begun = multiplexer().now();
    for (const deadline limit :
         {deadline(3ms), deadline(multiplexer().now() + 6ms), deadline(multiplexer().utc_now() + 9ms)}) {
        tracked_read read(reading(pipe.reader, into, 0, limit));
        read.state.start();
        ASSERT_TRUE(run_until_done(read.is));
        EXPECT_TRUE(failed(read.is, ETIMEDOUT));
    }
    EXPECT_GE(multiplexer().now() - begun, 6ms);
    EXPECT_LT(multiplexer().now() - begun, 2s);
}

TEST_P(deadlines, in_the_past_fail_in_the_next_pass_unless_it_is_ready) {
    for (const deadline limit :
         {deadline(multiplexer().now() - 1s), deadline(multiplexer().utc_now() - 1h)}) {
        tracked_read read(reading(pipe.reader, into, 0, limit));
        read.state.start();
        const auto before = multiplexer().now();
        ASSERT_TRUE(run_until_done(read.is));
        EXPECT_TRUE(failed(read.is, ETIMEDOUT));
        EXPECT_LT(multiplexer().now() - before, 500ms);
    }
}

TEST_P(deadlines, have_no_effect_if_they_are_out_of_range) {
    tracked_read read(reading(pipe.reader, into, 0, deadline(std::chrono::hours::max())));
    read.state.start();
    run_briefly();
    EXPECT_EQ(read.is.values, 0);
    ASSERT_TRUE(pipe.writer.write(io_request<const_bytes_type>{text("x")}).has_value());
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_TRUE(succeeded(read.is, 1));
}

TEST_P(deadlines, begin_with_the_start_not_with_the_construction) {
    tracked_read read(reading(pipe.reader, into, 0, 20ms));
    sleep before(async_sleep(multiplexer(), 30ms));
    before.state.start();
    ASSERT_TRUE(run_until_done(before.is));
    const auto begun = multiplexer().now();
    read.state.start();
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_GE(multiplexer().now() - begun, 20ms);
}

TEST_P(deadlines, are_not_checked_by_complete_io) {
    tracked_read read(reading(pipe.reader, into, 0, 2ms));
    read.state.start();
    const auto begun = multiplexer().now();
    while (multiplexer().now() - begun < 10ms)
        EXPECT_EQ(multiplexer().complete_io(), io_multiplexer::nothing_ready);
    EXPECT_EQ(read.is.values, 0);
    EXPECT_EQ(multiplexer().timeout_io(), 1);
    if (read.is.dones == 0) ASSERT_TRUE(run_until_done(read.is));
    EXPECT_TRUE(failed(read.is, ETIMEDOUT));
}

TEST_P(deadlines, leave_nothing_pending_if_they_are_met) {
    tracked_read read(reading(pipe.reader, into, 0, 5ms));
    read.state.start();
    ASSERT_TRUE(pipe.writer.write(io_request<const_bytes_type>{text("x")}).has_value());
    ASSERT_TRUE(run_until_done(read.is));
    EXPECT_TRUE(succeeded(read.is, 1));
    EXPECT_EQ(multiplexer().timeout_io_within(10ms), io_multiplexer::nothing_pending);
    tracked_read other(reading(pipe.reader, into));
    other.state.start();
    EXPECT_EQ(multiplexer().timeout_io_within(10ms), io_multiplexer::nothing_ready);
}

TEST_P(deadlines, are_counted_by_timeout_io_up_to_its_maximum) {
    EXPECT_EQ(multiplexer().timeout_io(), io_multiplexer::nothing_pending);
    std::vector<std::unique_ptr<sleep>> sleeps;
    for (int i = 0; i < 5; ++i) {
        sleeps.push_back(std::make_unique<sleep>(async_sleep(multiplexer(), 100ms)));
        sleeps.back()->state.start();
    }
    EXPECT_EQ(multiplexer().timeout_io(), io_multiplexer::nothing_ready);
    const auto begun = multiplexer().now();
    while (multiplexer().now() - begun < 110ms)
        EXPECT_EQ(multiplexer().complete_io(), io_multiplexer::nothing_ready);
    EXPECT_EQ(multiplexer().timeout_io(2), 2);
    EXPECT_EQ(multiplexer().timeout_io(2), 2);
    EXPECT_EQ(multiplexer().timeout_io_within(1s), 1);
    EXPECT_EQ(multiplexer().timeout_io(), io_multiplexer::nothing_pending);
    for (auto& each : sleeps)
        EXPECT_TRUE(succeeded(each->is));
}

TEST_P(deadlines, are_all_ended_by_timeout_io_after_they_have_passed) {
    constexpr int count = 2 * limits::completions_per_pass_max + 5;
    std::vector<std::unique_ptr<sleep>> sleeps;
    for (int i = 0; i < count; ++i) {
        sleeps.push_back(
            std::make_unique<sleep>(async_sleep(multiplexer(), deadline(multiplexer().now() - 1h))));
        sleeps.back()->state.start();
    }
    EXPECT_EQ(multiplexer().timeout_io_within(1h, 7), 7);
    EXPECT_EQ(multiplexer().timeout_io_within(1h), count - 7);
    for (auto& each : sleeps)
        EXPECT_TRUE(succeeded(each->is));
}

TEST_P(deadlines, wake_sleeps_in_the_order_of_their_times) {
    std::vector<std::unique_ptr<sleep>> sleeps;
    std::vector<int> order;
    for (const int ms : {9, 3, 6, 0, 12, 1}) {
        sleeps.push_back(std::make_unique<sleep>(async_sleep(multiplexer(), std::chrono::milliseconds(ms))));
        sleeps.back()->is.on_value = [&order, ms] { order.push_back(ms); };
    }
    for (auto& each : sleeps)
        each->state.start();
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    EXPECT_EQ(order, (std::vector<int>{0, 1, 3, 6, 9, 12}));
}

TEST_P(deadlines, end_a_sleep_with_success_when_polled_too) {
    sleep nap(async_sleep(multiplexer(), 1ms));
    nap.state.start();
    while (not nap.state.poll()) {}
    EXPECT_TRUE(succeeded(nap.is));
}

TEST_P(deadlines, are_optional_for_sleeps_which_then_wait_for_a_cancel) {
    sleep forever(async_sleep(multiplexer(), {}));
    forever.state.start();
    run_briefly();
    EXPECT_EQ(forever.is.values, 0);
    forever.state.cancel();
    ASSERT_TRUE(run_until_done(forever.is));
    EXPECT_TRUE(failed(forever.is, ECANCELED));
}

TEST_P(deadlines, end_many_waiting_reads_of_one_stream_each_at_its_own_time) {
    std::vector<std::unique_ptr<tracked_read>> reads;
    for (int i = 0; i < 50; ++i) {
        const auto within = std::chrono::microseconds(100 * (i * 7 % 50));
        reads.push_back(std::make_unique<tracked_read>(reading(pipe.reader, into, 0, within + 1ms)));
        reads.back()->state.start();
    }
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    for (auto& each : reads)
        EXPECT_TRUE(failed(each->is, ETIMEDOUT));
}

}  // namespace
}  // namespace sluice::io::conformance
