#include "sluice/smb/server/session/logon_throttle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <list>
#include <vector>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/report/silent_log_testing.hpp"

namespace sluice::smb::server {
namespace {

using std::chrono::milliseconds;

io::socket_address address(unsigned number) {
    const std::string text = "10.0." + std::to_string(number / 256) + "." + std::to_string(number % 256);
    return io::socket_address::ip(text, 445).value();
}

class guessing : public testing::Test {
protected:
    void fail(unsigned times, const io::socket_address& from = address(1)) {
        for (unsigned i = 0; i != times; ++i)
            throttle_.failed(from);
    }
    /// How long an attempt that arrives now and is patient waits until it is checked.
    milliseconds waits(const io::socket_address& from = address(1)) {
        const auto began = clock_.steady_now();
        auto entered = throttle_.enter(from);
        if (entered.is_immediate) return milliseconds(0);
        EXPECT_TRUE(entered.waiting.has_value());
        for (;;) {
            const milliseconds pause = throttle_.wait_for(*entered.waiting);
            if (pause == milliseconds(0)) break;
            clock_.advance(pause);
        }
        return std::chrono::duration_cast<milliseconds>(clock_.steady_now() - began);
    }

    simulated_clock clock_;
    silent_log log_;
    limit_rejections rejections_{log_, clock_};
    logon_throttle throttle_{clock_, rejections_};
};

TEST_F(guessing, is_checked_at_once_at_first_and_then_ever_later_up_to_a_limit) {
    for (unsigned i = 0; i != limits::logon_failures_free; ++i) {
        EXPECT_EQ(waits(), milliseconds(0));
        fail(1);
    }
    milliseconds before = waits();
    EXPECT_EQ(before, milliseconds(0)) << "the last one without a delay";
    for (int i = 0; i != 5; ++i) {
        fail(1);
        const milliseconds delay = waits();
        EXPECT_GT(delay, before);
        before = delay;
    }
    fail(50);
    EXPECT_EQ(waits(), limits::logon_delay_max);
    EXPECT_EQ(waits(address(2)), milliseconds(0)) << "another address is not delayed";
}

TEST_F(guessing, over_many_connections_is_as_slow_as_over_one) {
    fail(limits::logon_failures_free + 1);
    std::list<logon_throttle::attempt> waiting;
    std::size_t rejected = 0;
    for (int i = 0; i != 200; ++i) {
        auto entered = throttle_.enter(address(1));
        EXPECT_FALSE(entered.is_immediate);
        if (entered.waiting)
            waiting.push_back(*std::move(entered.waiting));
        else
            ++rejected;
    }
    EXPECT_EQ(waiting.size(), limits::logon_waiters_per_address_max);
    EXPECT_EQ(rejections_.of(limit::logon_waiters_per_address), rejected);
    std::size_t checked = 0;
    for (const auto end = clock_.steady_now() + std::chrono::seconds(5); clock_.steady_now() < end;) {
        const auto turn = std::ranges::find_if(
            waiting, [&](auto& one) { return throttle_.wait_for(one) == milliseconds(0); });
        if (turn != waiting.end()) {
            ++checked;
            fail(1);
            waiting.erase(turn);
        }
        clock_.advance(milliseconds(10));
    }
    EXPECT_GT(checked, 2U);
    EXPECT_LT(checked, 10U);
}

TEST_F(guessing, that_is_abandoned_lets_the_next_attempt_move_up) {
    fail(limits::logon_failures_free + 1);
    {
        const auto abandoned = throttle_.enter(address(1));
        ASSERT_TRUE(abandoned.waiting);
        EXPECT_EQ(throttle_.waiting(), 1U);
    }
    EXPECT_EQ(throttle_.waiting(), 0U);
    EXPECT_LE(waits(), milliseconds(100));
}

TEST_F(guessing, is_checked_in_the_order_of_arrival) {
    fail(limits::logon_failures_free + 1);
    auto first = throttle_.enter(address(1));
    auto second = throttle_.enter(address(1));
    clock_.advance(std::chrono::seconds(1));
    EXPECT_NE(throttle_.wait_for(*second.waiting), milliseconds(0));
    EXPECT_EQ(throttle_.wait_for(*first.waiting), milliseconds(0));
}

TEST_F(guessing, from_many_addresses_is_rejected_beyond_a_number_of_waiting_attempts_while_others_log_on) {
    std::vector<logon_throttle::attempt> waiting;
    for (unsigned number = 0; number != 200; ++number) {
        fail(20, address(number));
        for (;;) {
            auto entered = throttle_.enter(address(number));
            if (not entered.waiting) break;
            waiting.push_back(*std::move(entered.waiting));
        }
    }
    EXPECT_EQ(throttle_.waiting(), limits::logon_waiters_max);
    EXPECT_GT(rejections_.of(limit::logon_waiters), 0U);
    EXPECT_TRUE(throttle_.enter(address(5000)).is_immediate);
}

TEST_F(guessing, from_one_ipv6_host_does_not_delay_its_network_before_many_failures) {
    const auto host = [](unsigned number) {
        return io::socket_address::ip("2001:db8:0:1::" + std::to_string(number + 1), 445).value();
    };
    fail(limits::logon_failures_free + 1, host(0));
    EXPECT_FALSE(throttle_.enter(host(0)).is_immediate);
    EXPECT_TRUE(throttle_.enter(host(1)).is_immediate);
    for (unsigned number = 1; number != 100; ++number)
        fail(1, host(number));
    EXPECT_FALSE(throttle_.enter(host(5000)).is_immediate) << "a host that changes its address gains little";
    EXPECT_TRUE(throttle_.enter(io::socket_address::ip("2001:db8:0:2::1", 445).value()).is_immediate);
}

TEST_F(guessing, from_many_ipv6_networks_is_delayed_as_well) {
    for (unsigned number = 0; number != 6000; ++number) {
        char text[64];
        (void)snprintf(text, sizeof text, "2001:db8:0:%x::1", number);
        const auto from = io::socket_address::ip(text, 445).value();
        fail(1, from);
    }
    EXPECT_FALSE(throttle_.enter(io::socket_address::ip("2001:db8:0:ffff::1", 445).value()).is_immediate);
}

TEST_F(guessing, is_forgiven_by_time) {
    fail(20);
    clock_.advance(logon_throttle::failures_expire_after + std::chrono::seconds(1));
    EXPECT_EQ(waits(), milliseconds(0));
    fail(1);
    EXPECT_EQ(waits(), milliseconds(0));
}

TEST_F(guessing, is_remembered_of_a_bounded_number_of_addresses_and_of_the_latest) {
    fail(20, address(0));
    for (unsigned i = 1; i != 2 * logon_throttle::addresses_max; ++i) {
        clock_.advance(milliseconds(1));
        fail(1, address(i));
        if (i % 100 == 0) fail(1, address(0));
    }
    EXPECT_EQ(throttle_.addresses(), logon_throttle::addresses_max);
    EXPECT_GT(waits(address(0)), milliseconds(0));
}

}  // namespace
}  // namespace sluice::smb::server
