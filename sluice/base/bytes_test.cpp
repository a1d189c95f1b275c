#include "sluice/base/bytes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "sluice/base/endian.hpp"
#include "sluice/base/random.hpp"

namespace sluice {
namespace {

constexpr std::uint64_t u64_max = std::numeric_limits<std::uint64_t>::max();

struct header {
    le16 kind;
    be32 length;
};

struct padded {
    std::uint8_t small;
    std::uint16_t large;
};
static_assert(wire_type<header> and wire_type<le64> and wire_type<std::array<std::byte, 16>>);
static_assert(!wire_type<std::uint16_t> and !wire_type<padded> and !wire_type<bool> and !wire_type<char*>);

static_assert(std::convertible_to<mutable_bytes, bytes_view> and
              !std::convertible_to<bytes_view, mutable_bytes>);
static_assert(std::convertible_to<std::vector<std::byte>&, mutable_bytes>);
static_assert(std::convertible_to<const std::vector<std::byte>&, bytes_view>);
static_assert(!std::convertible_to<const std::vector<std::byte>&, mutable_bytes>);
static_assert(std::convertible_to<std::span<const std::byte, 4>, bytes_view>);
static_assert(std::convertible_to<mutable_bytes, std::span<std::byte>>);
static_assert(std::is_trivially_copyable_v<bytes_view> and sizeof(bytes_view) == 2 * sizeof(void*));

std::vector<std::byte> numbered(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<std::byte>(i);
    return bytes;
}

TEST(checked_arithmetic, returns_no_value_if_and_only_if_64_bits_do_not_suffice) {
    EXPECT_EQ(checked_add(u64_max - 1, 1), u64_max);
    EXPECT_EQ(checked_add(u64_max, 1), std::nullopt);
    EXPECT_EQ(checked_add(u64_max, u64_max), std::nullopt);
    EXPECT_EQ(checked_mul(u64_max, 1), u64_max);
    EXPECT_EQ(checked_mul(u64_max, 0), 0u);
    EXPECT_EQ(checked_mul(1ull << 32, (1ull << 32) - 1), ((1ull << 32) - 1) << 32);
    EXPECT_EQ(checked_mul(1ull << 32, 1ull << 32), std::nullopt);
}

TEST(bytes, a_slice_within_the_bytes_is_that_part) {
    const auto buffer = numbered(10);
    const bytes_view all = buffer;
    const auto part = all.slice({.offset = 3, .length = 4});
    ASSERT_TRUE(part);
    EXPECT_EQ(part->data(), buffer.data() + 3);
    EXPECT_EQ(part->size(), 4u);
    EXPECT_TRUE(all.slice({.offset = 0, .length = 10}));
}

TEST(bytes, an_empty_slice_may_be_at_the_end_but_not_after_it) {
    const auto buffer = numbered(10);
    const bytes_view all = buffer;
    EXPECT_TRUE(all.slice({.offset = 10, .length = 0}));
    EXPECT_FALSE(all.slice({.offset = 11, .length = 0}));
    EXPECT_TRUE(bytes_view().slice({}));
    EXPECT_FALSE(bytes_view().slice({.offset = 0, .length = 1}));
}

TEST(bytes, a_slice_whose_end_wraps_around_64_bits_is_outside) {
    const auto buffer = numbered(10);
    const bytes_view all = buffer;
    EXPECT_FALSE(all.slice({.offset = 1, .length = u64_max}));
    EXPECT_FALSE(all.slice({.offset = u64_max, .length = 1}));
    EXPECT_FALSE(all.slice({.offset = u64_max, .length = 2}));
    EXPECT_FALSE(all.slice({.offset = 5, .length = u64_max - 4}));
    EXPECT_FALSE(all.slice({.offset = (1ull << 32) + 1, .length = 1}));
    EXPECT_FALSE(all.slice({.offset = 1, .length = (1ull << 32) + 1}));
}

TEST(bytes, first_and_from_cut_at_one_end) {
    const auto buffer = numbered(10);
    const bytes_view all = buffer;
    EXPECT_EQ(all.first(10)->size(), 10u);
    EXPECT_FALSE(all.first(11));
    EXPECT_EQ(all.from(10)->size(), 0u);
    EXPECT_EQ(all.from(7)->data(), buffer.data() + 7);
    EXPECT_FALSE(all.from(11));
    EXPECT_FALSE(all.from(u64_max));
}

TEST(bytes, take_copies_a_wire_struct_from_any_place) {
    const auto buffer = numbered(10);
    const bytes_view all = buffer;
    EXPECT_EQ(all.take<header>()->kind.value(), 0x0100);
    EXPECT_EQ(all.take_at<header>(1)->length.value(), 0x03040506u);
    EXPECT_TRUE(all.take_at<header>(4));
    EXPECT_FALSE(all.take_at<header>(5));
    EXPECT_FALSE(all.take_at<header>(u64_max));
    EXPECT_FALSE(all.first(5)->take<header>());
}

TEST(bytes, a_taken_value_does_not_change_with_the_buffer) {
    auto buffer = numbered(4);
    const auto taken = bytes_view(buffer).take<le16>();
    buffer[0] = std::byte{0xff};
    EXPECT_EQ(taken->value(), 0x0100);
}

TEST(bytes, mutable_bytes_write_through_to_the_buffer) {
    auto buffer = numbered(4);
    const mutable_bytes all = buffer;
    (*all.slice({.offset = 1, .length = 2}))[1] = std::byte{0xff};
    EXPECT_EQ(buffer[2], std::byte{0xff});
}

TEST(bytes, bytes_of_a_wire_struct_are_its_layout) {
    const header wire = {.kind = le16(0x0201), .length = be32(0x03040506)};
    const bytes_view bytes = bytes_of(wire);
    ASSERT_EQ(bytes.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i)
        EXPECT_EQ(bytes[i], static_cast<std::byte>(i + 1));
}

// The model adds in 128 bits, where nothing wraps.
TEST(bytes, slices_agree_with_128_bit_arithmetic_near_every_edge) {
    __extension__ using wide = unsigned __int128;
    seeded_random random(1);
    const auto buffer = numbered(300);
    for (int round = 0; round < 100'000; ++round) {
        const std::size_t size = random.below(buffer.size() + 1);
        const auto interesting = [&]() -> std::uint64_t {
            switch (random.below(4)) {
                case 0:
                    return random.below(size + 3);
                case 1:
                    return u64_max - random.below(size + 3);
                case 2:
                    return (1ull << random.below(64)) - random.below(3);
                default:
                    return random.next_u64();
            }
        };
        const byte_extent extent = {.offset = interesting(), .length = interesting()};
        const auto part = bytes_view(buffer.data(), size).slice(extent);
        const bool inside = wide(extent.offset) + extent.length <= size;
        ASSERT_EQ(part.has_value(), inside) << extent.offset << " + " << extent.length << " of " << size;
        if (part) ASSERT_EQ(part->data(), buffer.data() + extent.offset);
        if (part) ASSERT_EQ(part->size(), extent.length);
    }
}

TEST(bytes, are_equal_by_content_at_any_address) {
    const auto here = numbered(4);
    auto there = numbered(5);
    EXPECT_FALSE(bytes_view(here) == bytes_view(there));
    EXPECT_TRUE(bytes_view(here) == *bytes_view(there).first(4));
    there[3] = std::byte{0xff};
    EXPECT_FALSE(bytes_view(here) == *bytes_view(there).first(4));
    EXPECT_TRUE(bytes_view() == *bytes_view(here).first(0));
}

TEST(bytes_death, an_unchecked_index_outside_stops_the_program) {
    const auto buffer = numbered(4);
    EXPECT_DEATH((void)bytes_view(buffer)[4], "index < size_");
}

}  // namespace
}  // namespace sluice
