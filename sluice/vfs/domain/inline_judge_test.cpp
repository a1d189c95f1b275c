#include "sluice/vfs/domain/inline_judge.hpp"

#include <gtest/gtest.h>

namespace sluice::vfs {
namespace {

using namespace std::chrono_literals;
using measure = inline_judge::measure;

constexpr std::uint64_t between_samples = 1;
constexpr inline_judge::time_point start{1000s};

void look_closer(inline_judge& judge) {
    judge.note_time(3ms);
    judge.note_time(3ms);
}

TEST(inline_judge, samples_every_sixteenth_call) {
    const inline_judge judge;
    int sampled = 0;
    for (std::uint64_t number = 1; number != 161; ++number)
        sampled += judge.wanted(number) == measure::time ? 1 : 0;
    EXPECT_EQ(sampled, 10);
}

TEST(inline_judge, two_slow_samples_of_sixteen_start_an_examination) {
    inline_judge judge;
    for (int i = 0; i != 50; ++i) {
        judge.note_time(i % 16 == 0 ? 3ms : 1ms);
        EXPECT_EQ(judge.wanted(between_samples), measure::nothing);
    }
    look_closer(judge);
    EXPECT_EQ(judge.wanted(between_samples), measure::sleep);
}

TEST(inline_judge, preempted_calls_never_offload) {
    inline_judge judge;
    look_closer(judge);
    for (int i = 0; i != 64; ++i)
        EXPECT_FALSE(judge.note_examined(50ms, false));
    EXPECT_EQ(judge.wanted(between_samples), measure::nothing) << "the examination has ended";
}

TEST(inline_judge, short_sleeps_never_offload) {
    inline_judge judge;
    look_closer(judge);
    for (int i = 0; i != 64; ++i)
        EXPECT_FALSE(judge.note_examined(1ms, true));
}

TEST(inline_judge, four_calls_that_slept_long_offload) {
    inline_judge judge;
    look_closer(judge);
    for (int i = 0; i != 3; ++i)
        EXPECT_FALSE(judge.note_examined(3ms, true));
    EXPECT_FALSE(judge.note_examined(1ms, false));
    EXPECT_TRUE(judge.note_examined(3ms, true));
    EXPECT_EQ(judge.wanted(between_samples), measure::nothing);
}

TEST(inline_judge, three_long_sleeps_of_64_calls_are_forgotten) {
    inline_judge judge;
    for (int round = 0; round != 2; ++round) {
        look_closer(judge);
        for (int i = 0; i != 64; ++i)
            EXPECT_FALSE(judge.note_examined(3ms, i < 3));
    }
}

TEST(inline_judge, a_hundred_prompt_calls_in_a_row_after_300_seconds_allow_inline_calls) {
    inline_judge judge;
    judge.note_offloaded_at(start);
    for (int i = 0; i != 200; ++i)
        EXPECT_FALSE(judge.note_offloaded_call(10us, start + 299s)) << "too early";
    EXPECT_FALSE(judge.note_offloaded_call(1ms, start + 300s)) << "a slow one";
    for (int i = 0; i != 99; ++i)
        EXPECT_FALSE(judge.note_offloaded_call(10us, start + 301s));
    EXPECT_TRUE(judge.note_offloaded_call(10us, start + 301s));
}

}  // namespace
}  // namespace sluice::vfs
