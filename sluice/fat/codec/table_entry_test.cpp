#include "sluice/fat/codec/table_entry.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice::fat {
namespace {

constexpr fat_type all_types[] = {fat_type::fat12, fat_type::fat16, fat_type::fat32};

TEST(table_entry, reads_back_as_written_and_preserves_its_neighbours) {
    for (const fat_type type : all_types) {
        std::vector<std::byte> fat(bytes_of_entries(type, 1000));
        std::map<std::uint32_t, std::uint32_t> expected;
        seeded_random random(7);
        for (int i = 0; i != 5000; ++i) {
            const auto cluster = static_cast<std::uint32_t>(random.below(1000));
            const auto value = static_cast<std::uint32_t>(random.below(entry_mask(type) + std::uint64_t{1}));
            ASSERT_TRUE(write_entry(type, {.bytes = fat}, cluster, value));
            expected[cluster] = value;
        }
        for (const auto& [cluster, value] : expected)
            EXPECT_EQ(read_entry(type, fat, cluster), value) << cluster;
    }
}

TEST(table_entry, is_located_where_the_specification_says) {
    const std::vector<std::byte> fat12{std::byte{0xf0}, std::byte{0xff}, std::byte{0xff},
                                       std::byte{0x03}, std::byte{0x40}, std::byte{0x00}};
    EXPECT_EQ(read_entry(fat_type::fat12, fat12, 0), 0xff0U);
    EXPECT_EQ(read_entry(fat_type::fat12, fat12, 1), 0xfffU);
    EXPECT_EQ(read_entry(fat_type::fat12, fat12, 2), 0x003U);
    EXPECT_EQ(read_entry(fat_type::fat12, fat12, 3), 0x004U);
    EXPECT_EQ(read_entry(fat_type::fat16, fat12, 1), 0x03ffU);
    EXPECT_EQ(read_entry(fat_type::fat32, fat12, 0), 0x03ff'fff0U);
}

TEST(table_entry, on_fat32_preserves_the_upper_four_bits) {
    std::vector<std::byte> fat(8, std::byte{0xa5});
    ASSERT_TRUE(write_entry(fat_type::fat32, {.bytes = fat}, 1, 0x0123'4567));
    EXPECT_EQ(fat[7], std::byte{0xa1});
    EXPECT_EQ(read_entry(fat_type::fat32, fat, 1), 0x0123'4567U);
}

TEST(table_entry, outside_its_piece_is_neither_read_nor_written) {
    for (const fat_type type : all_types) {
        std::vector<std::byte> piece(12);
        const std::uint64_t first = 12;
        for (std::uint32_t cluster = 0; cluster != 40; ++cluster) {
            const byte_extent extent = entry_extent(type, cluster);
            const bool inside = extent.offset >= first and extent.offset + extent.length <= first + 12;
            EXPECT_EQ(read_entry(type, piece, cluster, first).has_value(), inside);
            EXPECT_EQ(write_entry(type, {.bytes = piece, .first_byte = first}, cluster, 1), inside);
        }
    }
}

TEST(table_entry, counts_of_entries_and_bytes_agree) {
    for (const fat_type type : all_types)
        for (std::uint64_t bytes = 0; bytes != 64; ++bytes) {
            const std::uint64_t entries = entries_in(type, bytes);
            EXPECT_LE(bytes_of_entries(type, entries), bytes);
            EXPECT_GT(bytes_of_entries(type, entries + 1), bytes);
            const std::vector<std::byte> fat(bytes);
            if (entries != 0) {
                EXPECT_TRUE(read_entry(type, fat, static_cast<std::uint32_t>(entries - 1)));
            }
            EXPECT_FALSE(read_entry(type, fat, static_cast<std::uint32_t>(entries)));
        }
}

TEST(table_entry, distinguishes_free_next_bad_end_and_damage) {
    for (const fat_type type : all_types) {
        const std::uint32_t ones = entry_mask(type);
        EXPECT_EQ(classify(type, 0, 100).kind, entry_kind::free);
        EXPECT_EQ(classify(type, 1, 100).kind, entry_kind::invalid);
        EXPECT_EQ(classify(type, 2, 100), (table_entry{.kind = entry_kind::next, .next = 2}));
        EXPECT_EQ(classify(type, 100, 100), (table_entry{.kind = entry_kind::next, .next = 100}));
        EXPECT_EQ(classify(type, 101, 100).kind, entry_kind::invalid);
        EXPECT_EQ(classify(type, ones - 8, 100).kind, entry_kind::bad);
        EXPECT_EQ(classify(type, ones - 9, 100).kind, entry_kind::invalid);
        for (std::uint32_t end = ones - 7; end <= ones; ++end)
            EXPECT_EQ(classify(type, end, 100).kind, entry_kind::end);
    }
}

}  // namespace
}  // namespace sluice::fat
