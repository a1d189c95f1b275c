#include <pthread.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <deque>
#include <memory>

#include "tests/conformance/harness.hpp"

// complete_io and run: their results, their limits, and fairness; posted items.

namespace sluice::io::conformance {
namespace {

using namespace std::chrono_literals;
constexpr int none_ready = io_multiplexer::nothing_ready;
constexpr int none_pending = io_multiplexer::nothing_pending;

class loop : public on_every_back_end {
protected:
    std::deque<stream_read> start_ready_reads(std::size_t count) const {
        std::deque<stream_read> all = start_reads(count, medium::pipe);
        for (auto& each : all)
            (void)each.ends.writer.write(io_request<const_bytes_type>{text("x")});
        return all;
    }
    static auto done(const std::deque<stream_read>& all) {
        return std::ranges::count_if(all, [](const auto& each) { return each.read->is.dones == 1; });
    }
};
INSTANTIATE_TEST_SUITE_P(conformance, loop, every_back_end(), name_of_back_end);

struct counted_item final : posted_item {
    void invoke() noexcept override {
        ++invoked;
        if (then) then();
    }
    int invoked = 0;
    std::function<void()> then{};
};

TEST_P(loop, reports_that_nothing_is_pending) {
    auto& m = multiplexer();
    const auto before = m.now();
    EXPECT_EQ(m.complete_io(), none_pending);
    EXPECT_EQ(m.complete_io_within(1s), none_pending);
    EXPECT_EQ(m.timeout_io_within(1s), none_pending);
    EXPECT_EQ(m.run(), none_pending);
    EXPECT_EQ(m.try_run(), none_pending);
    EXPECT_EQ(m.try_run_for(1s), none_pending);
    EXPECT_EQ(m.invoke_posted_items(), 0);
    EXPECT_LT(m.now() - before, 500ms) << "without pending operations it does not wait";
    EXPECT_EQ(m.pending(), 0U);
}

TEST_P(loop, reports_that_an_operation_is_pending_but_not_ready) {
    auto ends = open_stream(medium::pipe);
    attach(ends.reader);
    std::array<std::byte, 1> into{};
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    auto& m = multiplexer();
    EXPECT_EQ(m.pending(), 1U);
    EXPECT_EQ(m.complete_io(), none_ready);
    EXPECT_EQ(m.try_run(), none_ready);
    using waiting = std::function<result<int>()>;
    for (const auto& wait : {waiting([&] { return m.try_run_for(4ms); }),
                             waiting([&] { return m.try_run_until(m.now() + 4ms); })}) {
        const auto before = m.now();
        EXPECT_EQ(wait(), none_ready);
        EXPECT_GE(m.now() - before, 4ms);
        EXPECT_LT(m.now() - before, 1s);
    }
    EXPECT_EQ(m.complete_io_until(m.now() - 1h), none_ready);
    EXPECT_EQ(m.try_run_until(m.now() - 1h), none_ready);
}

// It would wait for an hour, if it waited.
TEST_P(loop, waits_only_in_run_and_try_run) {
    auto ends = open_stream(medium::pipe);
    attach(ends.reader);
    std::array<std::byte, 1> into{};
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    tracked sleep(async_sleep(multiplexer(), 24h));
    sleep.state.start();
    auto& m = multiplexer();
    EXPECT_EQ(m.complete_io_within(1h), none_ready);
    EXPECT_EQ(m.complete_io_until(io_multiplexer::time_point::max()), none_ready);
    EXPECT_EQ(m.timeout_io_within(1h), none_ready);
    EXPECT_EQ(m.timeout_io_until(m.now() + 1h), none_ready);
    EXPECT_EQ(m.invoke_posted_items_within(1h), 0);
    EXPECT_EQ(m.invoke_posted_items_until(m.now() + 1h), 0);
    sleep.state.cancel();
    ASSERT_TRUE(run_until_done(sleep.is));
}

TEST_P(loop, completes_as_much_in_a_limited_time_as_in_several_passes) {
    if (not which().is_exact or which().is_simulated)
        GTEST_SKIP() << "this back end completes ready operations later";
    constexpr int count = 3 * limits::completions_per_pass_max;
    auto all = start_ready_reads(count);
    EXPECT_EQ(multiplexer().complete_io_within(1h), count);
    all = start_ready_reads(count);
    EXPECT_EQ(multiplexer().complete_io_within(1h, count - 1), count - 1);
    EXPECT_EQ(multiplexer().complete_io_within(-1h), 1) << "one pass is made";
}

TEST_P(loop, treats_a_negative_maximum_as_no_limit_for_a_pass) {
    auto all = start_ready_reads(3);
    int completed = 0;
    while (completed < 3)
        completed += multiplexer().run(-1).value_or(0);
    EXPECT_EQ(done(all), 3);
    all = start_ready_reads(3);
    while (done(all) < 3)
        (void)multiplexer().complete_io(-1);
    std::deque<counted_item> items(2);
    for (auto& each : items)
        multiplexer().post(each);
    EXPECT_EQ(multiplexer().invoke_posted_items(-1), 2);
    tracked sleep(async_sleep(multiplexer(), deadline(multiplexer().now() - 1h)));
    sleep.state.start();
    EXPECT_EQ(multiplexer().timeout_io(-1), 1);
}

TEST_P(loop, completes_exactly_the_requested_number) {
    auto all = start_ready_reads(20);
    auto& m = multiplexer();
    int total = 0;
    EXPECT_EQ(m.complete_io(0), none_ready);
    EXPECT_EQ(m.try_run(0), none_ready);
    EXPECT_EQ(m.run(0), none_ready);
    EXPECT_EQ(done(all), 0);
    for (const int max : {1, 3, 1, 5}) {
        const int completed = m.complete_io(max).value();
        EXPECT_LE(completed, max);
        total += std::max(0, completed);
        EXPECT_EQ(done(all), total);
    }
    while (total < 20) {
        const int completed = m.run(2).value();
        ASSERT_GE(completed, 1);
        EXPECT_LE(completed, 2);
        total += completed;
        EXPECT_EQ(done(all), total);
    }
    EXPECT_EQ(m.complete_io(), none_pending);
}

TEST_P(loop, completes_all_ready_operations_in_one_call_within_its_limit) {
    if (not which().is_exact or which().is_simulated) GTEST_SKIP() << "a simulation may take several";
    auto all = start_ready_reads(50);
    EXPECT_EQ(multiplexer().complete_io(), 50);
}

TEST_P(loop, serves_a_thousand_handles_at_once) {
    constexpr std::size_t count = 1000;
    std::deque<stream_read> all = start_reads(count, medium::pipe);
    run_briefly();
    EXPECT_EQ(done(all), 0);
    for (std::size_t i = 0; i < count; ++i) {
        const std::byte value{static_cast<unsigned char>(i)};
        auto& writer = all[i * 7 % count].ends.writer;
        ASSERT_TRUE(writer.write(io_request<const_bytes_type>{{&value, 1}}).has_value());
    }
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(succeeded(all[i * 7 % count].read->is, 1));
        EXPECT_EQ(all[i * 7 % count].into[0], std::byte{static_cast<unsigned char>(i)});
    }
}

TEST_P(loop, does_not_starve_a_handle_if_another_is_always_ready) {
    auto busy = open_stream(medium::pipe);
    auto quiet = open_stream(medium::pipe);
    for (io_handle* h : {&busy.reader, &busy.writer, &quiet.reader})
        attach(*h);
    std::byte one{};
    std::array<std::byte, 1> into{};
    bool stop = false;
    // A write and a read that start each other from their signals: one of them is always ready.
    tracked_write write(writing(busy.writer, {&one, 1}));
    tracked_read read(reading(busy.reader, {&one, 1}));
    write.is.on_done = [&] {
        if (not stop) read.state.start();
    };
    read.is.on_done = [&] {
        if (not stop) write.state.start();
    };
    tracked_read waiting(reading(quiet.reader, into));
    waiting.state.start();
    run_briefly();
    write.state.start();
    (void)quiet.writer.write(io_request<const_bytes_type>{text("x")});
    int passes = 0;
    while (waiting.is.dones == 0 and passes < 200) {
        (void)multiplexer().run();
        ++passes;
    }
    EXPECT_TRUE(succeeded(waiting.is, 1));
    EXPECT_LT(passes, which().is_simulated ? 200 : 8);
    stop = true;
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
}

TEST_P(loop, does_not_starve_deadlines_and_posted_items_if_a_handle_is_always_ready) {
    auto busy = open_stream(medium::pipe);
    attach(busy.reader);
    attach(busy.writer);
    std::byte one{};
    bool stop = false;
    tracked_write write(writing(busy.writer, {&one, 1}));
    tracked_read read(reading(busy.reader, {&one, 1}));
    write.is.on_done = [&] {
        if (not stop) read.state.start();
    };
    read.is.on_done = [&] {
        if (not stop) write.state.start();
    };
    tracked sleep(async_sleep(multiplexer(), 1ms));
    counted_item item;
    sleep.state.start();
    write.state.start();
    multiplexer().post(item);
    const auto begun = multiplexer().now();
    while (sleep.is.dones == 0 and multiplexer().now() - begun < 2s)
        (void)multiplexer().run();
    EXPECT_TRUE(succeeded(sleep.is));
    EXPECT_EQ(item.invoked, 1);
    stop = true;
    ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
}

TEST_P(loop, invokes_the_requested_number_of_posted_items_in_order) {
    std::deque<counted_item> items(10);
    std::vector<int> order;
    for (int i = 0; i < 10; ++i) {
        items[static_cast<std::size_t>(i)].then = [&order, i] { order.push_back(i); };
        multiplexer().post(items[static_cast<std::size_t>(i)]);
    }
    auto& m = multiplexer();
    EXPECT_EQ(m.complete_io(), none_pending) << "complete_io does not run posted items";
    EXPECT_TRUE(order.empty());
    EXPECT_EQ(m.invoke_posted_items(3), 3);
    EXPECT_EQ(m.invoke_posted_items_within(1s, 3), 3);
    EXPECT_EQ(m.invoke_posted_items(), 4);
    EXPECT_EQ(m.invoke_posted_items(), 0);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_P(loop, lets_a_posted_item_post_itself_without_starving_others) {
    counted_item item;
    item.then = [&] {
        if (item.invoked < 10'000) multiplexer().post(item);
    };
    auto ends = open_stream(medium::pipe);
    attach(ends.reader);
    (void)ends.writer.write(io_request<const_bytes_type>{text("x")});
    std::array<std::byte, 1> into{};
    tracked_read read(reading(ends.reader, into));
    read.state.start(initiation::batched);
    multiplexer().post(item);
    const int passes_max =
        which().is_simulated ? 1000 : 8;  // each takes a microsecond, and reads are delayed
    for (int passes = 0; read.is.dones == 0 and passes < passes_max; ++passes)
        (void)multiplexer().run();
    EXPECT_TRUE(succeeded(read.is, 1));
    while (item.invoked < 10'000 and multiplexer().invoke_posted_items().value_or(0) > 0) {}
    EXPECT_EQ(item.invoked, 10'000);
}

TEST_P(loop, invokes_posted_callables_once) {
    int invoked = 0;
    auto owned = std::make_unique<int>(7);
    ASSERT_TRUE(multiplexer()
                    .post([&invoked, owned = std::move(owned)]() noexcept { invoked += *owned; })
                    .has_value());
    const io_multiplexer::work_guard guard(multiplexer());
    EXPECT_EQ(multiplexer().run(), 1);
    EXPECT_EQ(invoked, 7);
    EXPECT_EQ(multiplexer().try_run(), none_ready) << "the guard announces more work";
    EXPECT_EQ(multiplexer().try_run_for(1ms), none_ready);
}

TEST_P(loop, starts_operations_from_posted_items) {
    auto ends = open_stream(medium::pipe);
    attach(ends.reader);
    (void)ends.writer.write(io_request<const_bytes_type>{text("x")});
    std::array<std::byte, 1> into{};
    tracked_read read(reading(ends.reader, into));
    counted_item item;
    item.then = [&] { read.state.start(); };
    multiplexer().post(item);
    while (multiplexer().run().value_or(0) > 0) {}
    EXPECT_TRUE(succeeded(read.is, 1));
}

// Interrupts system calls of this thread frequently.
class signal_storm {
public:
    signal_storm() {
        struct sigaction action{};
        action.sa_handler = [](int) {};  // without SA_RESTART
        ::sigaction(SIGALRM, &action, &previous_);
        const itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 200},
                              .it_value = {.tv_sec = 0, .tv_usec = 200}};
        ::setitimer(ITIMER_REAL, &often, nullptr);
    }
    ~signal_storm() {
        const itimerval never{};
        ::setitimer(ITIMER_REAL, &never, nullptr);
        ::sigaction(SIGALRM, &previous_, nullptr);
    }

private:
    struct sigaction previous_{};
};

TEST_P(loop, waits_for_the_full_time_despite_many_signals) {
    auto ends = open_stream(medium::pipe);
    attach(ends.reader);
    std::array<std::byte, 1> into{};
    tracked_read read(reading(ends.reader, into));
    read.state.start();
    const signal_storm storm;
    const auto before = multiplexer().now();
    EXPECT_EQ(multiplexer().try_run_for(20ms), none_ready);
    EXPECT_GE(multiplexer().now() - before, 20ms);
    EXPECT_EQ(multiplexer().try_run_until(multiplexer().now() + 20ms), none_ready);
    EXPECT_GE(multiplexer().now() - before, 40ms);
}

TEST_P(loop, transfers_every_byte_despite_many_signals) {
    for (const medium kind : {medium::pipe, medium::unix_pair}) {
        auto ends = open_stream(kind);
        attach(ends.reader);
        attach(ends.writer);
        const auto sent = pattern(static_cast<std::size_t>(rounds(4'000'000)));
        std::vector<std::byte> got;
        std::vector<std::byte> into(3000);
        tracked_write write(writing(ends.writer, sent));
        tracked_read read(reading(ends.reader, into));
        read.is.on_done = [&] {
            got.insert(got.end(), into.begin(), into.begin() + static_cast<std::ptrdiff_t>(read.is.bytes));
            if (read.is.code == 0 and got.size() < sent.size()) read.state.start();
        };
        const signal_storm storm;
        read.state.start();
        write.state.start();
        ASSERT_TRUE(run_until([&] { return multiplexer().pending() == 0; }));
        EXPECT_TRUE(succeeded(write.is, sent.size()));
        EXPECT_TRUE(got == sent);
    }
}

}  // namespace
}  // namespace sluice::io::conformance
