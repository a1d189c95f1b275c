#include "sluice/base/random.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <set>
#include <vector>

namespace sluice {
namespace {

using testing::Each;
using testing::ElementsAre;

static_assert(std::convertible_to<system_random&, secret_random_source&>);
static_assert(!std::convertible_to<seeded_random&, secret_random_source&>);

std::vector<std::uint64_t> draw(random_source& random, int count) {
    std::vector<std::uint64_t> drawn;
    for (int i = 0; i < count; ++i)
        drawn.push_back(random.next_u64());
    return drawn;
}

// The authors' xoshiro256starstar.c prints these for the state 1, 2, 3, 4. The first ones
// can be checked by hand: rotl(2 * 5, 7) * 9 = 11520; after that step the second word is 2 ^
// (3 ^ 1) = 0, hence 0.
TEST(seeded_random, returns_the_published_numbers_of_xoshiro256) {
    seeded_random random(seeded_random::state{1, 2, 3, 4});
    EXPECT_THAT(draw(random, 10),
                ElementsAre(11520u, 0u, 1509978240u, 1215971899390074240u, 1216172134540287360u,
                            607988272756665600u, 16172922978634559625u, 8476171486693032832u,
                            10595114339597558777u, 2904607092377533576u));
}

// splitmix64.c prints 0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f and
// 0xf88bb8a8724c81ec for the seed 0.
TEST(seeded_random, fills_its_state_from_the_seed_with_the_published_splitmix64) {
    seeded_random from_words(
        seeded_random::state{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec});
    seeded_random from_seed(0);
    const auto expected = draw(from_words, 100);
    EXPECT_EQ(draw(from_seed, 100), expected);
    EXPECT_EQ(expected[0], 0x99ec5f36cb75f2b4u);
}

TEST(seeded_random, fills_bytes_with_the_same_numbers_least_byte_first) {
    seeded_random numbers(7), bytes(7);
    std::array<std::byte, 19> filled{};
    bytes.fill(filled);
    const auto drawn = draw(numbers, 3);
    for (std::size_t i = 0; i < filled.size(); ++i)
        EXPECT_EQ(std::to_integer<std::uint64_t>(filled[i]), drawn[i / 8] >> (8 * (i % 8)) & 0xff);
    EXPECT_EQ(numbers.next_u64(), bytes.next_u64());
}

TEST(seeded_random, neighbouring_seeds_return_different_numbers) {
    std::set<std::uint64_t> first;
    for (std::uint64_t seed = 0; seed < 1000; ++seed)
        first.insert(seeded_random(seed).next_u64());
    EXPECT_EQ(first.size(), 1000u);
}

// A source of given numbers, which ends after them.
class scripted final : public random_source {
public:
    explicit scripted(std::vector<std::uint64_t> script) : script_(std::move(script)) {}
    void fill(std::span<std::byte>) noexcept override {}
    std::uint64_t next_u64() noexcept override { return script_.at(next_++); }
    std::size_t used() const { return next_; }

private:
    std::vector<std::uint64_t> script_;
    std::size_t next_ = 0;
};

// 2^64 mod 3 is 1: the draws 1 to 2^64 - 1 make whole rounds of three, and 0 is left over.
TEST(random_source, below_discards_the_numbers_that_would_favour_small_results) {
    scripted random({0, 1, 2, 3, UINT64_MAX});
    EXPECT_EQ(random.below(3), 1u);
    EXPECT_EQ(random.used(), 2u);
    EXPECT_EQ(random.below(3), 2u);
    EXPECT_EQ(random.below(3), 0u);
    EXPECT_EQ(random.below(3), 0u);
}

TEST(random_source, below_a_power_of_two_never_needs_two_numbers) {
    scripted random({0, UINT64_MAX});
    EXPECT_EQ(random.below(1), 0u);
    EXPECT_EQ(random.below(std::uint64_t{1} << 63), UINT64_MAX >> 1);
}

TEST(random_source, below_returns_every_number_about_equally_often) {
    seeded_random random(1);
    std::array<int, 7> seen{};
    for (int i = 0; i < 70'000; ++i)
        ++seen[random.below(seen.size())];
    EXPECT_THAT(seen, Each(testing::AllOf(testing::Gt(9'500), testing::Lt(10'500))));
}

TEST(system_random, fills_any_length_and_does_not_repeat_itself) {
    system_random random;
    random.fill({});
    std::vector<std::byte> one(1000), two(1000);
    random.fill(one);
    random.fill(two);
    EXPECT_NE(one, two);
    EXPECT_LT(std::ranges::count(one, std::byte{0}), 100);
    EXPECT_NE(random.next_u64(), random.next_u64());
}

TEST(predictable_secrets_for_simulation, repeat_with_their_seed) {
    predictable_secrets_for_simulation one(5), two(5);
    EXPECT_EQ(draw(one, 10), draw(two, 10));
}

TEST(random_death, misuse_stops_the_program) {
    EXPECT_DEATH((void)seeded_random(1).below(0), "bound != 0");
    EXPECT_DEATH(seeded_random(seeded_random::state{}), "broken invariant");
}

}  // namespace
}  // namespace sluice
