#include "sluice/vfs/domain/inline_policy.hpp"

#include <gtest/gtest.h>

namespace sluice::vfs {
namespace {

using namespace std::chrono_literals;
using measure = inline_policy::measure;

constexpr std::uint64_t between_samples = 1;
constexpr inline_policy::time_point start{1000s};

void look_closer(inline_policy& judge) {
    judge.record_time(3ms);
    judge.record_time(3ms);
}

TEST(inline_policy, samples_every_sixteenth_call) {
    const inline_policy judge;
    int sampled = 0;
    for (std::uint64_t number = 1; number != 161; ++number)
        sampled += judge.wanted(number) == measure::time ? 1 : 0;
    EXPECT_EQ(sampled, 10);
}

TEST(inline_policy, two_slow_samples_of_sixteen_start_an_examination) {
    inline_policy judge;
    for (int i = 0; i != 50; ++i) {
        judge.record_time(i % 16 == 0 ? 3ms : 1ms);
        EXPECT_EQ(judge.wanted(between_samples), measure::nothing);
    }
    look_closer(judge);
    EXPECT_EQ(judge.wanted(between_samples), measure::sleep);
}

TEST(inline_policy, preempted_calls_never_offload) {
    inline_policy judge;
    look_closer(judge);
    for (int i = 0; i != 64; ++i)
        EXPECT_FALSE(judge.record_examined(50ms, false));
    EXPECT_EQ(judge.wanted(between_samples), measure::nothing) << "the examination has ended";
}

TEST(inline_policy, short_sleeps_never_offload) {
    inline_policy judge;
    look_closer(judge);
    for (int i = 0; i != 64; ++i)
        EXPECT_FALSE(judge.record_examined(1ms, true));
}

TEST(inline_policy, four_calls_that_slept_long_offload) {
    inline_policy judge;
    look_closer(judge);
    for (int i = 0; i != 3; ++i)
        EXPECT_FALSE(judge.record_examined(3ms, true));
    EXPECT_FALSE(judge.record_examined(1ms, false));
    EXPECT_TRUE(judge.record_examined(3ms, true));
    EXPECT_EQ(judge.wanted(between_samples), measure::nothing);
}

TEST(inline_policy, three_long_sleeps_of_64_calls_are_forgotten) {
    inline_policy judge;
    for (int round = 0; round != 2; ++round) {
        look_closer(judge);
        for (int i = 0; i != 64; ++i)
            EXPECT_FALSE(judge.record_examined(3ms, i < 3));
    }
}

TEST(inline_policy, a_hundred_prompt_calls_in_a_row_after_300_seconds_allow_inline_calls) {
    inline_policy judge;
    judge.record_offloaded_at(start);
    for (int i = 0; i != 200; ++i)
        EXPECT_FALSE(judge.record_offloaded_call(10us, start + 299s)) << "too early";
    EXPECT_FALSE(judge.record_offloaded_call(1ms, start + 300s)) << "a slow one";
    for (int i = 0; i != 99; ++i)
        EXPECT_FALSE(judge.record_offloaded_call(10us, start + 301s));
    EXPECT_TRUE(judge.record_offloaded_call(10us, start + 301s));
}

}  // namespace
}  // namespace sluice::vfs
