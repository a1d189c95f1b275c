#include "sluice/cli/transfer_estimate.hpp"

#include <gtest/gtest.h>

#include "sluice/cli/terminal_width.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

// A transfer in simulated time.
struct transfer {
    transfer_estimate::time_point now{};
    transfer_estimate estimate{now};
    std::uint64_t bytes = 0;

    void run(std::chrono::milliseconds time, std::uint64_t bytes_per_second) {
        for (auto passed = 0ms; passed < time; passed += 100ms) {
            now += 100ms;
            bytes += bytes_per_second / 10;
            estimate.sample(bytes, now);
        }
    }
};

TEST(transfer_estimate, has_no_rate_at_first) {
    transfer one;
    one.run(400ms, 1000);
    EXPECT_EQ(one.estimate.rate(), std::nullopt);
    EXPECT_EQ(one.estimate.time_for(10), std::nullopt);
    one.run(100ms, 1000);
    EXPECT_NEAR(one.estimate.rate().value(), 1000, 1);
    EXPECT_EQ(one.estimate.time_for(5000), 5s);
}

TEST(transfer_estimate, follows_a_change_and_ignores_a_short_pause) {
    transfer one;
    one.run(10'000ms, 1'000'000);
    one.run(200ms, 0);
    EXPECT_GT(one.estimate.rate().value(), 900'000);
    one.run(20'000ms, 100'000);
    EXPECT_NEAR(one.estimate.rate().value(), 100'000, 10'000);
}

TEST(transfer_estimate, reports_no_time_for_a_stalled_transfer) {
    transfer one;
    one.run(2'000ms, 1000);
    one.run(120'000ms, 0);
    EXPECT_EQ(one.estimate.time_for(1'000'000), std::nullopt);
}

TEST(transfer_estimate, ignores_a_stopped_clock_and_a_smaller_number) {
    transfer one;
    one.run(1'000ms, 1000);
    one.estimate.sample(one.bytes + 1'000'000, one.now);
    one.estimate.sample(1, one.now + 1s);
    EXPECT_NEAR(one.estimate.rate().value(), 1000, 1);
}

TEST(duration_text, has_hours_only_if_there_are_any) {
    EXPECT_EQ(duration_text(7s), "0:07");
    EXPECT_EQ(duration_text(754s), "12:34");
    EXPECT_EQ(duration_text(3h), "3:00:00");
}

TEST(progress_line, shows_all_facts_if_there_is_room) {
    const progress_facts facts{
        .done_bytes = 50, .total_bytes = 100, .rate = 1048576.0, .left = 7s, .name = "a/b"};
    EXPECT_EQ(progress_line(facts, 80), "[============            ]  50 %  1.0 MiB/s  0:07 left  a/b");
}

TEST(progress_line, never_exceeds_the_terminal) {
    const progress_facts facts{.done_bytes = 1,
                               .total_bytes = 3,
                               .rate = 123456.0,
                               .left = 7h,
                               .name = "日本語/日本語/日本語/日本語/日本語"};
    for (std::size_t columns = 0; columns != 120; ++columns)
        EXPECT_LE(terminal_width(progress_line(facts, columns)), columns);
}

TEST(progress_line, is_not_at_100_percent_before_the_end) {
    EXPECT_TRUE(progress_line({.done_bytes = 999'999, .total_bytes = 1'000'000}, 80).contains(" 99 %"));
    EXPECT_TRUE(progress_line({}, 80).contains("100 %")) << "nothing to copy is complete";
}

}  // namespace
}  // namespace sluice::cli
