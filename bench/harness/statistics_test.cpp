#include "bench/harness/statistics.hpp"

#include <gtest/gtest.h>

#include <array>

namespace sluice::bench {
namespace {

TEST(statistics, the_median_of_an_odd_number_is_the_middle_value) {
    const summary s = summarise(std::array{9.0, 1.0, 5.0});
    EXPECT_EQ(s.median, 5);
    EXPECT_EQ(s.min, 1);
    EXPECT_EQ(s.max, 9);
    EXPECT_EQ(s.n, 3u);
}

TEST(statistics, the_median_of_an_even_number_is_between_the_middle_two) {
    EXPECT_EQ(summarise(std::array{1.0, 9.0, 2.0, 4.0}).median, 3);
}

TEST(statistics, nothing_summarises_to_nothing) {
    EXPECT_EQ(summarise({}).n, 0u);
    EXPECT_EQ(summarise({}).median, 0);
}

TEST(statistics, a_paired_ratio_cancels_a_disturbance_of_both_sides) {
    // In the middle of the second repeat the machine becomes ten times slower. The
    // medians' ratio would be 20.
    EXPECT_EQ(paired_ratio(std::array{2.0, 20.0, 20.0}, std::array{1.0, 1.0, 10.0}), 2);
}

}  // namespace
}  // namespace sluice::bench
