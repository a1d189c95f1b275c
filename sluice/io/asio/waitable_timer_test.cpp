#include "sluice/io/asio/waitable_timer.hpp"

#include <vector>

#include "sluice/io/asio/io_context_testing.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
namespace net = asio_names;

class asio_timers : public test_kit::with_io_context {};
INSTANTIATE_TEST_SUITE_P(over, asio_timers, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

TEST_P(asio_timers, end_in_the_order_of_their_times_and_return_how_many_they_cancel) {
    std::vector<int> order;
    net::steady_timer late(*context, 3ms);
    net::steady_timer early(*context, 1ms);
    net::steady_timer never(*context, net::steady_timer::time_point::max());
    EXPECT_EQ(never.cancel(), 0U);
    late.async_wait([&](std::error_code why) {
        EXPECT_FALSE(why);
        order.push_back(2);
        EXPECT_EQ(never.expires_after(1h), 2U);
    });
    early.async_wait([&](std::error_code) { order.push_back(1); });
    for (int i = 3; i <= 4; ++i) {
        never.async_wait([&, i](std::error_code why) {
            EXPECT_EQ(why, asio::error::operation_aborted);
            order.push_back(i);
        });
    }
    context->run();
    EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
}

TEST_P(asio_timers, waits_may_be_cancelled_one_at_a_time) {
    std::vector<int> order;
    net::steady_timer never(*context, 24h);
    for (int i = 1; i <= 3; ++i) {
        never.async_wait([&, i](std::error_code why) {
            EXPECT_EQ(why, asio::error::operation_aborted);
            order.push_back(i);
        });
    }
    never.cancel_one();  // by an item after those that start the waits
    context->poll();
    EXPECT_EQ(order, (std::vector{1}));
    EXPECT_EQ(never.cancel_one(), 1U);
    EXPECT_EQ(never.cancel_one(), 1U);
    context->run();
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
    EXPECT_EQ(never.cancel_one(), 0U);
}

TEST_P(asio_timers, one_whose_time_has_passed_ends_at_once_but_from_the_loop) {
    net::steady_timer timer(*context);  // the beginning of the clock
    bool has_ended = false;
    timer.async_wait([&](std::error_code why) {
        EXPECT_FALSE(why);
        has_ended = true;
    });
    EXPECT_FALSE(has_ended);
    timer.wait();
    context->run();
    EXPECT_TRUE(has_ended);
}

// A clock that the test sets.
struct set_clock {
    using duration = std::chrono::milliseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<set_clock>;

    inline static time_point current{};
    inline static int asked = 0;
    static time_point now() noexcept { return current; }
};
// Checks every millisecond; the clock reaches the time at the third check.
struct looks {
    static set_clock::duration to_wait_duration(const set_clock::duration& left) {
        if (++set_clock::asked == 3) set_clock::current += left;
        return 1ms;
    }
};

TEST_P(asio_timers, a_clock_that_does_not_move_evenly_is_read_again) {
    set_clock::current = {};
    set_clock::asked = 0;
    net::basic_waitable_timer<set_clock, looks> timer(*context);
    timer.expires_at(set_clock::time_point(1h));
    bool has_ended = false;
    timer.async_wait([&](std::error_code why) {
        EXPECT_FALSE(why);
        has_ended = true;
    });
    context->run();
    EXPECT_TRUE(has_ended);
    EXPECT_EQ(set_clock::asked, 3);
    EXPECT_EQ(set_clock::now(), timer.expiry());
}

TEST_P(asio_timers, cancelling_one_that_reads_its_clock_again_ends_it) {
    set_clock::current = {};
    set_clock::asked = 100;
    net::basic_waitable_timer<set_clock, looks> timer(*context);
    timer.expires_at(set_clock::time_point(1h));
    asio::error_code seen;
    timer.async_wait([&](std::error_code why) { seen = why; });
    context->run_for(1ms);
    timer.cancel();
    context->run();
    EXPECT_EQ(seen, asio::error::operation_aborted);
}

}  // namespace
}  // namespace sluice::io
