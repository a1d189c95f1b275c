#include "sluice/smb/server/net/loop_watchdog.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/core/limits.hpp"

namespace sluice::smb::server {
namespace {

using namespace std::chrono_literals;
using finding = turn_observer::finding;

class loop_turns : public testing::Test {
protected:
    turn_observer::report after(clock_source::duration elapsed, std::uint64_t turn) {
        clock_.advance(elapsed);
        return observer_.observe(turn, clock_.steady_now());
    }

    simulated_clock clock_;
    turn_observer observer_;
};

TEST_F(loop_turns, that_end_are_not_reported) {
    for (std::uint64_t turn = 1; turn < 100; turn += 2)
        EXPECT_EQ(after(250ms, turn).what, finding::none);
}

TEST_F(loop_turns, that_a_sleeping_loop_is_between_are_not_reported) {
    for (unsigned i = 0; i != 100; ++i)
        EXPECT_EQ(after(250ms, 8).what, finding::none);
}

TEST_F(loop_turns, that_last_a_second_are_reported_once_and_again_when_they_end) {
    EXPECT_EQ(after(250ms, 7).what, finding::none);
    for (unsigned i = 0; i != 3; ++i)
        EXPECT_EQ(after(250ms, 7).what, finding::none);
    const auto stalled = after(250ms, 7);
    EXPECT_EQ(stalled.what, finding::stalled);
    EXPECT_EQ(stalled.lasted, 1s);
    EXPECT_EQ(after(250ms, 7).what, finding::none);
    const auto recovered = after(250ms, 8);
    EXPECT_EQ(recovered.what, finding::recovered);
    EXPECT_EQ(recovered.lasted, 1500ms);
    EXPECT_EQ(after(250ms, 8).what, finding::none);
}

TEST_F(loop_turns, are_not_longer_for_the_time_that_the_process_was_stopped) {
    EXPECT_EQ(after(250ms, 7).what, finding::none);
    EXPECT_EQ(after(1h, 7).what, finding::none);
    EXPECT_EQ(after(250ms, 9).what, finding::none);
}

class collecting_log final : public event_log {
public:
    void write(event_severity, std::string_view what, std::initializer_list<event_field>) noexcept override {
        lines.emplace_back(what);
    }
    std::vector<std::string> lines;
};

TEST(loop_watchdog, reports_a_loop_stuck_in_a_turn_and_its_recovery) {
    simulated_clock clock;
    collecting_log log;
    const auto loop = io::make_epoll_multiplexer().value();
    loop_watchdog dog({loop.get()}, clock, log);
    const auto watch_for = [&](clock_source::duration how_long) {
        for (clock_source::duration passed{}; passed <= how_long; passed += limits::loop_sample_period) {
            dog.check();
            clock.advance(limits::loop_sample_period);
        }
    };
    watch_for(10s);
    EXPECT_TRUE(log.lines.empty()) << "outside of run() a loop is not stuck";
    ASSERT_TRUE(loop->post([&] { watch_for(limits::loop_turn_max); }));
    EXPECT_GT(loop->run().value_or(0), 0);
    EXPECT_EQ(log.lines, std::vector<std::string>{"event loop does not respond"});
    EXPECT_EQ(dog.stalls(), 1U);
    dog.check();
    EXPECT_EQ(log.lines.back(), "event loop responds again");
    ASSERT_TRUE(loop->post([&] { watch_for(limits::loop_sample_period); }));
    EXPECT_GT(loop->run().value_or(0), 0);
    EXPECT_EQ(log.lines.size(), 2U) << "the next turn starts from zero";
}

}  // namespace
}  // namespace sluice::smb::server
