#include "sluice/sync/byte_range.hpp"

#include <gtest/gtest.h>

namespace sluice::sync {
namespace {

constexpr std::uint64_t last_byte = ~std::uint64_t{0};

TEST(byte_range, reaches_the_last_byte_and_never_past_it) {
    EXPECT_EQ(byte_range::of({.offset = last_byte, .length = 1}), byte_range::from(last_byte));
    EXPECT_EQ(byte_range::of({.offset = 1, .length = last_byte}), byte_range::from(1));
    EXPECT_FALSE(byte_range::of({.offset = last_byte, .length = 2}));
    EXPECT_FALSE(byte_range::of({.offset = 2, .length = last_byte}));
    EXPECT_EQ(byte_range::whole().last(), last_byte);
}

TEST(byte_range, overlaps_ranges_with_a_common_byte) {
    const auto middle = byte_range::between({.first = 10, .last = 19});
    EXPECT_TRUE(middle.overlaps(byte_range::between({.first = 19, .last = 19})));
    EXPECT_TRUE(middle.overlaps(byte_range::between({.first = 0, .last = 10})));
    EXPECT_TRUE(middle.overlaps(byte_range::whole()));
    EXPECT_FALSE(middle.overlaps(byte_range::between({.first = 20, .last = 20})));
    EXPECT_FALSE(middle.overlaps(byte_range::between({.first = 0, .last = 9})));
    EXPECT_TRUE(byte_range::from(last_byte).overlaps(byte_range::whole()));
}

TEST(byte_range, without_bytes_overlaps_only_ranges_that_cover_both_neighbours) {
    const auto middle = byte_range::between({.first = 10, .last = 19});
    EXPECT_FALSE(middle.overlaps(byte_range::none_at(10)));
    EXPECT_TRUE(middle.overlaps(byte_range::none_at(11)));
    EXPECT_TRUE(byte_range::none_at(19).overlaps(middle));
    EXPECT_FALSE(byte_range::none_at(20).overlaps(middle));
    EXPECT_FALSE(byte_range::none_at(11).overlaps(byte_range::none_at(11)));
    EXPECT_TRUE(byte_range::none_at(last_byte).overlaps(byte_range::whole()));
    EXPECT_EQ(byte_range::of({.offset = 5, .length = 0}), byte_range::none_at(5));
}

TEST(byte_range, without_bytes_at_the_beginning_is_nowhere) {
    EXPECT_TRUE(byte_range::none_at(0).is_nowhere());
    EXPECT_FALSE(byte_range::none_at(0).overlaps(byte_range::whole()));
    EXPECT_FALSE(byte_range::whole().overlaps(byte_range::none_at(0)));
    EXPECT_FALSE(byte_range::none_at(1).is_nowhere());
}

TEST(byte_range, covers_ranges_within_it) {
    const auto middle = byte_range::between({.first = 10, .last = 19});
    EXPECT_TRUE(middle.covers(middle));
    EXPECT_TRUE(middle.covers(byte_range::between({.first = 12, .last = 12})));
    EXPECT_FALSE(middle.covers(byte_range::between({.first = 12, .last = 20})));
    EXPECT_FALSE(middle.covers(byte_range::none_at(12)));
}

}  // namespace
}  // namespace sluice::sync
