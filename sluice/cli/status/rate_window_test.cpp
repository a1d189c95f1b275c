#include "sluice/cli/status/rate_window.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;
using smb::server::traffic;

// Simulates a server that reads this number of bytes per second, sampled each second.
void watch(rate_window& rates, int from_s, int until_s, std::uint64_t& bytes, std::uint64_t each_second) {
    for (int second = from_s; second != until_s; ++second) {
        traffic done;
        done.read_bytes = bytes;
        rates.add(clock_source::steady_time(std::chrono::seconds(second)), done);
        bytes += each_second;
    }
}

TEST(rate_window, one_sample_yields_no_rate) {
    rate_window rates;
    EXPECT_FALSE(rates.over(1s));
    rates.add({}, {});
    EXPECT_FALSE(rates.over(1s));
}

TEST(rate_window, a_rate_covers_the_requested_time_only) {
    rate_window rates;
    std::uint64_t bytes = 0;
    watch(rates, 0, 20, bytes, 1000);
    watch(rates, 20, 26, bytes, 5000);
    ASSERT_TRUE(rates.over(1s));
    EXPECT_EQ(rates.over(1s)->read_bytes, 5000);
    EXPECT_EQ(rates.over(10s)->seconds, 10);
    EXPECT_EQ(rates.over(10s)->read_bytes, (5 * 5000 + 5 * 1000) / 10);
}

TEST(rate_window, a_short_history_yields_the_rate_over_its_length) {
    rate_window rates;
    std::uint64_t bytes = 0;
    watch(rates, 0, 3, bytes, 70);
    EXPECT_EQ(rates.over(10s)->seconds, 2);
    EXPECT_EQ(rates.over(10s)->read_bytes, 70);
}

TEST(rate_window, two_samples_of_one_moment_yield_no_rate) {
    rate_window rates;
    rates.add({}, {});
    rates.add({}, {});
    EXPECT_FALSE(rates.over(1s));
}

}  // namespace
}  // namespace sluice::cli
