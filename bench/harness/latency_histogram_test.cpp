#include "bench/harness/latency_histogram.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace sluice::bench {
namespace {

TEST(latency_histogram, short_durations_are_exact) {
    latency_histogram h;
    for (std::uint64_t ns = 1; ns <= 100; ++ns)
        h.record(ns);
    EXPECT_EQ(h.percentile(0.5), 50u);
    EXPECT_EQ(h.percentile(0.99), 99u);
    EXPECT_EQ(h.percentile(1), 100u);
    EXPECT_EQ(h.percentile(0), 1u);
}

TEST(latency_histogram, long_durations_are_within_a_64th_and_never_understated) {
    for (std::uint64_t ns = 1; ns < std::uint64_t{1} << 62; ns += ns / 4 + 1) {
        latency_histogram h;
        h.record(ns);
        h.record(std::numeric_limits<std::uint64_t>::max());
        EXPECT_GE(h.percentile(0.5), ns);
        EXPECT_LE(h.percentile(0.5) - ns, ns / 64);
    }
}

TEST(latency_histogram, the_longest_duration_of_64_bits_has_a_bucket) {
    latency_histogram h;
    h.record(std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(h.percentile(0.5), std::numeric_limits<std::uint64_t>::max());
}

TEST(latency_histogram, one_in_a_million_is_seen) {
    latency_histogram h;
    for (int i = 0; i < 1'999'998; ++i)
        h.record(100);
    h.record(1'000'000);
    h.record(1'000'000);
    EXPECT_EQ(h.percentile(0.99999), 100u);
    EXPECT_EQ(h.percentile(0.9999991), 1'000'000u);
    EXPECT_TRUE(h.resolves(0.999999));
}

TEST(latency_histogram, does_not_claim_a_percentile_without_a_record_above_it) {
    latency_histogram h;
    for (int i = 0; i < 10'000; ++i)
        h.record(5);
    EXPECT_TRUE(h.resolves(0.9999));
    EXPECT_FALSE(h.resolves(0.99999));
}

TEST(latency_histogram, a_percentile_never_passes_the_maximum) {
    latency_histogram h;
    h.record(1'000'001);
    EXPECT_EQ(h.percentile(0.5), 1'000'001u);
}

TEST(latency_histogram, merging_adds_the_records_up) {
    latency_histogram a;
    latency_histogram b;
    a.record(10);
    b.record(30);
    b.record(40);
    a.merge(b);
    EXPECT_EQ(a.count(), 3u);
    EXPECT_EQ(a.percentile(0.5), 30u);
    EXPECT_EQ(a.max(), 40u);
}

TEST(latency_histogram, an_empty_one_returns_zero) {
    EXPECT_EQ(latency_histogram().percentile(0.99), 0u);
}

}  // namespace
}  // namespace sluice::bench
