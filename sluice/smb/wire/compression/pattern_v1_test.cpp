#include "sluice/smb/wire/compression/pattern_v1.hpp"

#include "sluice/smb/wire/compression/compression_testing.hpp"

namespace sluice::smb::wire {
namespace {

message_bytes runs(std::size_t front, std::size_t middle, std::size_t back) {
    message_bytes made(front, std::byte{1});
    for (std::size_t i = 0; i != middle; ++i)
        made.push_back(std::byte(2 + i % 2));
    made.insert(made.end(), back, std::byte{9});
    return made;
}

TEST(pattern_v1, finds_the_runs_at_the_start_and_the_end) {
    const message_bytes data = runs(100, 50, 77);
    EXPECT_EQ(runs_of(data).front, 100U);
    EXPECT_EQ(runs_of(data).back, 77U);
}

TEST(pattern_v1, counts_data_of_one_byte_once) {
    const message_bytes data = runs(1000, 0, 0);
    EXPECT_EQ(runs_of(data).front, 1000U);
    EXPECT_EQ(runs_of(data).back, 0U);
}

TEST(pattern_v1, ignores_runs_of_less_than_64_bytes) {
    const message_bytes data = runs(63, 50, 63);
    EXPECT_EQ(runs_of(data).front, 0U);
    EXPECT_EQ(runs_of(data).back, 0U);
    EXPECT_EQ(runs_of(runs(63, 0, 0)).front, 0U);
    EXPECT_EQ(runs_of(runs(64, 0, 0)).front, 64U);
    EXPECT_EQ(runs_of({}).front, 0U);
}

TEST(pattern_v1, finds_two_runs_without_anything_between) {
    const message_bytes data = runs(64, 0, 64);
    EXPECT_EQ(runs_of(data).front, 64U);
    EXPECT_EQ(runs_of(data).back, 64U);
}

}  // namespace
}  // namespace sluice::smb::wire
