#include "sluice/cli/status/rate_window.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;
using smb::server::traffic;

// A server that reads so many bytes a second, looked at each second.
void watch(rate_window& rates, int from_s, int until_s, std::uint64_t& bytes, std::uint64_t each_second) {
    for (int second = from_s; second != until_s; ++second) {
        traffic done;
        done.read_bytes = bytes;
        rates.add(clock_source::steady_time(std::chrono::seconds(second)), done);
        bytes += each_second;
    }
}

TEST(rate_window, one_look_tells_no_rate) {
    rate_window rates;
    EXPECT_FALSE(rates.over(1s));
    rates.add({}, {});
    EXPECT_FALSE(rates.over(1s));
}

TEST(rate_window, a_rate_is_that_of_the_time_asked_for_not_of_all) {
    rate_window rates;
    std::uint64_t bytes = 0;
    watch(rates, 0, 20, bytes, 1000);
    watch(rates, 20, 26, bytes, 5000);
    ASSERT_TRUE(rates.over(1s));
    EXPECT_EQ(rates.over(1s)->read_bytes, 5000);
    EXPECT_EQ(rates.over(10s)->seconds, 10);
    EXPECT_EQ(rates.over(10s)->read_bytes, (5 * 5000 + 5 * 1000) / 10);
}

TEST(rate_window, before_there_is_enough_it_tells_over_what_it_has_seen) {
    rate_window rates;
    std::uint64_t bytes = 0;
    watch(rates, 0, 3, bytes, 70);
    EXPECT_EQ(rates.over(10s)->seconds, 2);
    EXPECT_EQ(rates.over(10s)->read_bytes, 70);
}

TEST(rate_window, two_looks_at_one_moment_tell_no_rate) {
    rate_window rates;
    rates.add({}, {});
    rates.add({}, {});
    EXPECT_FALSE(rates.over(1s));
}

}  // namespace
}  // namespace sluice::cli
