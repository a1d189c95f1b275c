#include "sluice/smb/server/report/loop_watchdog.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/core/limits.hpp"

namespace sluice::smb::server {
namespace {

using namespace std::chrono_literals;
using finding = turn_observer::finding;

constexpr int thread_of_loop = 77;
constexpr auto period = limits::loop_sample_period;

class loop_turns : public testing::Test {
protected:
    turn_observer::report after(clock_source::duration elapsed, std::uint64_t turn,
                                std::optional<thread_usage> usage = {}) {
        clock_.advance(elapsed);
        return observer_.observe({.turn = turn, .now = clock_.steady_now(), .usage = usage});
    }
    // Samples of one turn, all without a finding.
    void pass(clock_source::duration elapsed, std::uint64_t turn, std::optional<thread_usage> usage = {}) {
        for (clock_source::duration passed{}; passed < elapsed; passed += period)
            EXPECT_EQ(after(period, turn, usage).what, finding::none) << passed.count();
    }

    simulated_clock clock_;
    turn_observer observer_;
};

TEST_F(loop_turns, that_end_are_not_reported) {
    for (std::uint64_t turn = 1; turn < 100; turn += 2)
        EXPECT_EQ(after(period, turn).what, finding::none);
}

TEST_F(loop_turns, that_a_sleeping_loop_is_between_are_not_reported) {
    pass(10s, 8);
}

TEST_F(loop_turns, that_last_100_ms_are_reported_when_they_end) {
    pass(period, 7);
    pass(limits::loop_turn_max, 7);
    const auto slow = after(period, 9);
    EXPECT_EQ(slow.what, finding::slow);
    EXPECT_EQ(slow.lasted, 100ms);
    pass(limits::loop_turn_max - period, 9);
    EXPECT_EQ(after(period, 10).what, finding::none) << "seen for less than that";
}

TEST_F(loop_turns, that_last_a_second_are_reported_at_once_and_again_when_they_end) {
    pass(limits::loop_stall_min, 7);
    const auto stalled = after(period, 7);
    EXPECT_EQ(stalled.what, finding::stalled);
    EXPECT_EQ(stalled.lasted, 1s);
    pass(period, 7);
    const auto recovered = after(period, 8);
    EXPECT_EQ(recovered.what, finding::recovered);
    EXPECT_EQ(recovered.lasted, 1s + 2 * period);
    EXPECT_EQ(after(period, 8).what, finding::none);
}

TEST_F(loop_turns, are_not_longer_for_the_time_that_the_process_was_stopped) {
    pass(period, 7);
    EXPECT_EQ(after(1h, 7).what, finding::none);
    EXPECT_EQ(after(period, 9).what, finding::none);
}

TEST_F(loop_turns, are_not_longer_for_the_time_that_the_thread_waits_for_a_processor) {
    pass(period, 7);
    pass(10s, 7, thread_usage{.is_runnable = true, .cpu_time = 3s});
    EXPECT_EQ(after(period, 9).what, finding::none);
}

TEST_F(loop_turns, are_longer_for_the_time_that_the_thread_computes) {
    pass(period, 7);
    clock_source::duration cpu_time{};
    for (clock_source::duration passed{}; passed <= limits::loop_turn_max; passed += period)
        EXPECT_EQ(after(period, 7, thread_usage{.is_runnable = true, .cpu_time = cpu_time += period}).what,
                  finding::none);
    EXPECT_EQ(after(period, 9).what, finding::slow);
}

// Ticks of 10 ms, and samples 25 ms apart.
TEST_F(loop_turns, are_longer_for_all_the_time_that_the_thread_computes_although_it_comes_in_ticks) {
    const auto in_ticks = [](clock_source::duration used) { return used / 10ms * 10ms; };
    clock_source::duration used = 1s;
    (void)after(period, 7, thread_usage{.is_runnable = true, .cpu_time = in_ticks(used)});
    for (clock_source::duration passed{}; passed <= limits::loop_turn_max; passed += period)
        EXPECT_EQ(
            after(period, 7, thread_usage{.is_runnable = true, .cpu_time = in_ticks(used += period)}).what,
            finding::none);
    const auto slow = after(period, 9);
    EXPECT_EQ(slow.what, finding::slow);
    EXPECT_EQ(slow.lasted, 120ms) << "125 ms, less half a tick";
}

TEST_F(loop_turns, are_longer_for_the_time_that_the_thread_sleeps_in_a_call) {
    pass(period, 7);
    pass(limits::loop_turn_max, 7, thread_usage{.is_runnable = false, .cpu_time = 3s});
    EXPECT_EQ(after(period, 9).what, finding::slow);
}

class collecting_log final : public event_log {
public:
    void write(event_severity, std::string_view what,
               std::initializer_list<event_field> fields) noexcept override {
        std::string line(what);
        for (const auto& [name, value] : fields)
            if (name == "command" or name == "share" or (name == "not_logged" and value != "0"))
                line.append(" ").append(name).append("=").append(value);
        lines.push_back(std::move(line));
    }
    std::vector<std::string> lines;
};

class threads_that_sleep final : public thread_usage_source {
public:
    std::optional<thread_usage> of(int thread) noexcept override {
        EXPECT_EQ(thread, thread_of_loop);
        return thread_usage{};
    }
};

class loop_watch : public testing::Test {
protected:
    void watch_for(clock_source::duration how_long) {
        for (clock_source::duration passed{}; passed <= how_long; passed += period) {
            dog.check();
            clock.advance(period);
        }
    }
    // A turn of the loop that lasts so long, and serves `work`.
    void turn_of(clock_source::duration how_long, std::optional<loop_work> work = {}) {
        ASSERT_TRUE(loop->post([&] {
            if (work) loop_activity::begin(*work);
            watch_for(how_long);
        }));
        EXPECT_GT(loop->run().value_or(0), 0);
        dog.check();
    }
    [[nodiscard]] loop_work create_in(std::string_view share) {
        return {.command = wire::command::create, .domain = dog.domains().number_of(share)};
    }

    simulated_clock clock;
    collecting_log log;
    threads_that_sleep threads;
    std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    loop_activity activity{*loop};
    const loop_activity::use here{activity, thread_of_loop};
    loop_watchdog dog{{&activity}, clock, threads, log};
};

TEST_F(loop_watch, reports_a_loop_stuck_in_a_turn_and_its_recovery) {
    watch_for(10s);
    EXPECT_TRUE(log.lines.empty()) << "outside of run() a loop is not stuck";
    turn_of(limits::loop_stall_min, create_in("files"));
    EXPECT_EQ(log.lines, (std::vector<std::string>{"event loop does not respond command=create share=files",
                                                   "event loop responds again command=create share=files"}));
    EXPECT_EQ(dog.stalls(), 1U);
    EXPECT_EQ(dog.slow_turns(), 1U);
}

TEST_F(loop_watch, counts_a_loop_as_stuck_until_its_turn_ends) {
    ASSERT_TRUE(loop->post([&] {
        watch_for(limits::loop_turn_max);
        EXPECT_EQ(dog.stuck_loops(), 0U) << "slow only";
        watch_for(limits::loop_stall_min);
        EXPECT_EQ(dog.stuck_loops(), 1U);
    }));
    EXPECT_GT(loop->run().value_or(0), 0);
    dog.check();
    EXPECT_EQ(dog.stuck_loops(), 0U);
}

TEST_F(loop_watch, counts_no_loop_as_stuck_while_it_waits_for_a_file_system) {
    vfs::inline_call_slot& calls = vfs::inline_call_slot::of_this_thread();
    ASSERT_TRUE(loop->post([&] {
        calls.begin(5);
        watch_for(limits::loop_stall_min + period);
        EXPECT_EQ(dog.stalls(), 1U) << "it is reported";
        EXPECT_EQ(dog.stuck_loops(), 0U);
        calls.end();
        watch_for(period);
        EXPECT_EQ(dog.stuck_loops(), 1U) << "the turn continues without the call";
        calls.begin(5);
        dog.check();
        EXPECT_EQ(dog.stuck_loops(), 1U) << "the call has just begun";
        dog.check();
        EXPECT_EQ(dog.stuck_loops(), 0U);
        calls.end();
    }));
    EXPECT_GT(loop->run().value_or(0), 0);
    dog.check();
    EXPECT_EQ(dog.stuck_loops(), 0U);
}

TEST_F(loop_watch, reports_a_slow_turn_with_the_request_and_the_share) {
    turn_of(limits::loop_turn_max - period, create_in("files"));
    EXPECT_TRUE(log.lines.empty());
    turn_of(limits::loop_turn_max, create_in("other"));
    EXPECT_EQ(log.lines, std::vector<std::string>{"slow event loop turn command=create share=other"});
    EXPECT_EQ(dog.stalls(), 0U);
    EXPECT_EQ(dog.slow_turns(), 1U);
}

TEST_F(loop_watch, reports_the_domain_of_a_call_that_sleeps_from_one_sample_to_the_next) {
    std::vector<std::uint32_t> blocked;
    dog.on_blocked_call([&](std::uint32_t domain) { blocked.push_back(domain); });
    vfs::inline_call_slot& calls = vfs::inline_call_slot::of_this_thread();
    const auto call = [&](std::uint32_t domain, unsigned samples) {
        calls.begin(domain);
        for (unsigned i = 0; i != samples; ++i)
            dog.check();
        calls.end();
    };
    ASSERT_TRUE(loop->post([&] {
        call(5, 1);
        call(6, 1);
        EXPECT_TRUE(blocked.empty()) << "each has ended before the next sample";
        call(7, 2);
    }));
    EXPECT_GT(loop->run().value_or(0), 0);
    EXPECT_EQ(blocked, std::vector<std::uint32_t>{7});
}

TEST_F(loop_watch, names_no_request_of_an_earlier_turn) {
    turn_of(period, create_in("files"));
    turn_of(limits::loop_turn_max);
    EXPECT_EQ(log.lines, std::vector<std::string>{"slow event loop turn command=none share=none"});
}

TEST_F(loop_watch, does_not_fill_the_log_if_every_turn_is_slow) {
    for (unsigned i = 0; i != 20; ++i)
        turn_of(limits::loop_turn_max);
    EXPECT_EQ(log.lines.size(), 1U);
    clock.advance(limits::slow_turn_log_period);
    turn_of(limits::loop_turn_max);
    EXPECT_EQ(log.lines.back(), "slow event loop turn command=none share=none not_logged=19");
    EXPECT_EQ(dog.slow_turns(), 21U);
}

}  // namespace
}  // namespace sluice::smb::server
