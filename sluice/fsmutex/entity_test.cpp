#include "sluice/fsmutex/entity.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "sluice/fsmutex/queue/sip_hash.hpp"

namespace sluice::fsmutex {
namespace {

constexpr auto shared = lock_mode::shared;

TEST(sip_hash, returns_the_published_test_vectors) {
    std::array<std::byte, 15> input{};
    for (std::size_t i = 0; i != input.size(); ++i)
        input[i] = static_cast<std::byte>(i);
    constexpr sip_key key{.low = 0x0706'0504'0302'0100, .high = 0x0f0e'0d0c'0b0a'0908};
    EXPECT_EQ(sip_hash_64(input, key), 0xa129'ca61'49be'45e5);
    EXPECT_EQ(sip_hash_128({}, key)[0], 0xe6a8'25ba'047f'81a3);
    EXPECT_EQ(sip_hash_128({}, key)[1], 0x9302'55c7'1472'f66d);
}

TEST(an_entity, keeps_63_bits_of_its_number_and_its_mode) {
    constexpr entity all(~std::uint64_t{0}, shared);
    EXPECT_EQ(all.number(), ~std::uint64_t{0} >> 1);
    EXPECT_FALSE(all.is_exclusive());
    EXPECT_TRUE(entity(0).is_exclusive());
    EXPECT_EQ(entity(0).number(), 0);
    EXPECT_EQ(entity::from_bits(entity(7).bits()), entity(7));
    EXPECT_EQ(entity::from_bits(entity(7, shared).bits()), entity(7, shared));
}

TEST(an_entity, is_the_same_for_the_same_name_in_every_release) {
    EXPECT_EQ(entity::of_name("printer").bits(), entity::of_name("printer").bits());
    EXPECT_EQ(entity::of_name("printer", shared).number(), entity::of_name("printer").number());
    EXPECT_NE(entity::of_name("printer").number(), entity::of_name("printer2").number());
    // Stored in files: must not change.
    EXPECT_EQ(entity::of_name("").number(), 0x1e92'4b9d'7377'00d7);
}

TEST(an_entity, if_random_differs_from_the_next) {
    predictable_secrets_for_simulation random(1);
    EXPECT_NE(entity::random(random).number(), entity::random(random).number());
}

TEST(an_entity_set, is_sorted_without_repetitions_and_takes_the_stronger_mode) {
    const std::vector wanted{entity(9, shared), entity(3, shared), entity(9), entity(3, shared), entity(1)};
    const auto set = entity_set::of(wanted).value();
    const std::vector<entity> expected{entity(1), entity(3, shared), entity(9)};
    EXPECT_TRUE(std::equal(set.view().begin(), set.view().end(), expected.begin(), expected.end()));
}

TEST(an_entity_set, is_not_needed_for_ordered_entities) {
    EXPECT_TRUE(is_in_order(std::vector{entity(1)}));
    EXPECT_TRUE(is_in_order(std::vector{entity(1), entity(3, shared), entity(9)}));
    EXPECT_FALSE(is_in_order({}));
    EXPECT_FALSE(is_in_order(std::vector{entity(1), entity(9), entity(3, shared)}));
    EXPECT_FALSE(is_in_order(std::vector{entity(3), entity(3, shared)}));
}

TEST(an_entity_set, of_nothing_is_refused_and_of_thousands_is_not) {
    EXPECT_EQ(entity_set::of({}).error(), std::errc::invalid_argument);
    std::vector<entity> many;
    for (std::uint64_t i = 5000; i != 0; --i)
        many.emplace_back(i);
    auto set = entity_set::of(many).value();
    const auto moved = std::move(set);
    ASSERT_EQ(moved.view().size(), 5000);
    EXPECT_EQ(moved.view().front(), entity(1));
}

TEST(two_requests, conflict_over_a_common_entity_that_one_requests_exclusively) {
    const std::vector readers{entity(1, shared), entity(5, shared), entity(7, shared)};
    const std::vector others{entity(0), entity(2), entity(5, shared), entity(8)};
    const std::vector writer{entity(2), entity(7)};
    EXPECT_FALSE(conflict(readers, others));
    EXPECT_TRUE(conflict(readers, writer));
    EXPECT_TRUE(conflict(writer, others));
    EXPECT_FALSE(conflict(readers, readers));
    EXPECT_TRUE(conflict(writer, writer));
}

}  // namespace
}  // namespace sluice::fsmutex
