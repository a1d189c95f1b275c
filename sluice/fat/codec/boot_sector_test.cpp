#include "sluice/fat/codec/boot_sector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/random.hpp"
#include "sluice/fat/codec/boot_sector_testing.hpp"
#include "sluice/fat/device/memory_device.hpp"

namespace sluice::fat {
namespace {

using testing::HasSubstr;

TEST(boot_sector, decodes_to_the_geometry_of_a_floppy) {
    const auto shape = decode_boot_sector(floppy_boot_sector(), floppy_bytes);
    ASSERT_TRUE(shape);
    EXPECT_EQ(shape->type, fat_type::fat12);
    EXPECT_EQ(shape->fat_offset, 512U);
    EXPECT_EQ(shape->fat_bytes, 9U * 512);
    EXPECT_EQ(shape->fat_copy_offset(1), 10U * 512);
    EXPECT_EQ(shape->root_offset, 19U * 512);
    EXPECT_EQ(shape->data_offset, 33U * 512);
    EXPECT_EQ(shape->cluster_count, 2847U);
    EXPECT_EQ(shape->cluster_offset(3), 34U * 512);
    EXPECT_EQ(shape->serial, 0x1234'5678U);
    EXPECT_EQ(std::string_view(shape->label.data(), 11), "FLOPPY     ");
    EXPECT_EQ(shape->odd, format_anomaly::none);
    EXPECT_FALSE(shape->is_dirty);
}

TEST(boot_sector, for_fat32_has_root_cluster_info_and_backup_sectors) {
    const auto shape = decode_boot_sector(fat32_boot_sector(), fat32_bytes);
    ASSERT_TRUE(shape);
    EXPECT_EQ(shape->type, fat_type::fat32);
    EXPECT_EQ(shape->cluster_count, 70'000U);
    EXPECT_EQ(shape->root_cluster, 2U);
    EXPECT_EQ(shape->info_offset, 512U);
    EXPECT_EQ(shape->backup_offset, 6U * 512);
    EXPECT_TRUE(shape->is_mirrored);
    EXPECT_EQ(shape->odd, format_anomaly::none);
}

TEST(boot_sector, without_16_bit_fat_length_is_fat32_however_few_clusters_as_linux_reads_it) {
    boot_sector sector = fat32_boot_sector();
    sector.total_sectors_32 = le32(32 + 2 * 550 + 100);
    const auto shape = decode_boot_sector(sector, fat32_bytes);
    ASSERT_TRUE(shape);
    EXPECT_EQ(shape->type, fat_type::fat32);
    EXPECT_EQ(shape->cluster_count, 100U);
    EXPECT_TRUE(has(shape->odd, format_anomaly::few_clusters));
}

TEST(boot_sector, decides_between_fat12_and_fat16_at_4085_clusters) {
    boot_sector sector = floppy_boot_sector();
    sector.fat_sectors_16 = le16(20);
    const std::uint16_t before_data = 1 + 2 * 20 + 14;
    sector.total_sectors_16 = le16(before_data + 4084);
    EXPECT_EQ(decode_boot_sector(sector, 1 << 22)->type, fat_type::fat12);
    sector.total_sectors_16 = le16(before_data + 4085);
    EXPECT_EQ(decode_boot_sector(sector, 1 << 22)->type, fat_type::fat16);
}

TEST(boot_sector, counts_no_cluster_without_an_entry_in_the_fat) {
    boot_sector sector = floppy_boot_sector();
    sector.fat_sectors_16 = le16(2);
    const auto shape = decode_boot_sector(sector, floppy_bytes);
    ASSERT_TRUE(shape);
    EXPECT_EQ(shape->cluster_count, 1024U * 2 / 3 - 2);
    EXPECT_TRUE(has(shape->odd, format_anomaly::table_is_short));
    EXPECT_LE(shape->fat_used_bytes(), shape->fat_bytes);
}

TEST(boot_sector, with_more_sectors_than_the_image_has_is_still_read) {
    const auto shape = decode_boot_sector(floppy_boot_sector(), 100'000);
    ASSERT_TRUE(shape);
    EXPECT_TRUE(has(shape->odd, format_anomaly::image_is_short));
}

TEST(boot_sector, may_declare_one_fat_as_the_only_active_one) {
    boot_sector sector = fat32_boot_sector();
    fat32_fields fields = fat32_fields_of(sector);
    fields.flags = le16(0x81);
    set_fat32_fields(sector, fields);
    const auto shape = decode_boot_sector(sector, fat32_bytes);
    ASSERT_TRUE(shape);
    EXPECT_FALSE(shape->is_mirrored);
    EXPECT_EQ(shape->active_fat, 1U);
}

// Each case damages one field; the message names the value and the rule.
struct damage {
    boot_fault fault;
    void (*apply)(boot_sector&);
    const char* says;
};
const damage damages[] = {
    {boot_fault::is_exfat, [](boot_sector& s) { s.oem_name = {'E', 'X', 'F', 'A', 'T', ' ', ' ', ' '}; },
     "exFAT"},
    {boot_fault::is_ntfs, [](boot_sector& s) { s.oem_name = {'N', 'T', 'F', 'S', ' ', ' ', ' ', ' '}; },
     "NTFS"},
    {boot_fault::is_empty, [](boot_sector& s) { s = {}; }, "mkfs"},
    {boot_fault::sector_size, [](boot_sector& s) { s.bytes_per_sector = le16(0); }, "is 0, must be 512"},
    {boot_fault::sector_size, [](boot_sector& s) { s.bytes_per_sector = le16(768); }, "768"},
    {boot_fault::sector_size, [](boot_sector& s) { s.bytes_per_sector = le16(8192); }, "8192"},
    {boot_fault::cluster_size, [](boot_sector& s) { s.sectors_per_cluster = le8(0); },
     "is 0, must be a power"},
    {boot_fault::cluster_size, [](boot_sector& s) { s.sectors_per_cluster = le8(3); }, "is 3"},
    {boot_fault::no_reserved_sectors, [](boot_sector& s) { s.reserved_sectors = le16(0); }, "reserved"},
    {boot_fault::no_fats, [](boot_sector& s) { s.fat_count = le8(0); }, "number of FATs is 0"},
    {boot_fault::media_byte, [](boot_sector& s) { s.media = le8(7); }, "media byte is 7"},
    {boot_fault::no_fat_sectors,
     [](boot_sector& s) {
         s.fat_sectors_16 = le16(0);
         s.extended = {};
     },
     "sectors per FAT is 0"},
    {boot_fault::too_many_fat_sectors, [](boot_sector& s) { s.fat_sectors_16 = le16(60'000); }, "120000"},
    {boot_fault::root_entries, [](boot_sector& s) { s.root_entries = le16(17); }, "multiple of the 16"},
    {boot_fault::no_sectors, [](boot_sector& s) { s.total_sectors_16 = le16(0); }, "total sectors is 0"},
    {boot_fault::no_data, [](boot_sector& s) { s.total_sectors_16 = le16(25); }, "sector 33"},
    {boot_fault::too_many_clusters,
     [](boot_sector& s) {
         s.total_sectors_16 = le16(0);
         s.total_sectors_32 = le32(100'000);
     },
     "at most 65524"},
};

TEST(boot_sector, that_breaks_a_rule_is_rejected_with_value_and_rule) {
    for (const damage& each : damages) {
        boot_sector sector = floppy_boot_sector();
        each.apply(sector);
        const auto shape = decode_boot_sector(sector, floppy_bytes);
        ASSERT_FALSE(shape) << each.says;
        EXPECT_EQ(shape.error().fault, each.fault) << each.says;
        EXPECT_THAT(shape.error().message(), HasSubstr(each.says));
    }
}

TEST(boot_sector, with_a_missing_active_fat_is_rejected) {
    boot_sector sector = fat32_boot_sector();
    fat32_fields fields = fat32_fields_of(sector);
    fields.flags = le16(0x82);
    set_fat32_fields(sector, fields);
    const auto shape = decode_boot_sector(sector, fat32_bytes);
    ASSERT_FALSE(shape);
    EXPECT_EQ(shape.error().fault, boot_fault::active_fat);
}

TEST(boot_sector, is_unreadable_if_the_image_is_too_short) {
    memory_device image(100);
    const auto shape = read_geometry(image);
    ASSERT_FALSE(shape);
    EXPECT_EQ(shape.error().fault, boot_fault::unreadable);
    EXPECT_THAT(shape.error().message(), HasSubstr("100 bytes"));
}

// The invariants of geometry.hpp hold for any boot sector.
TEST(boot_sector, with_any_bytes_has_a_valid_geometry_or_none) {
    seeded_random random(99);
    int accepted = 0;
    for (int i = 0; i != 200'000; ++i) {
        boot_sector sector = i % 2 == 0 ? floppy_boot_sector() : fat32_boot_sector();
        auto* const bytes = reinterpret_cast<std::byte*>(&sector);
        for (std::uint64_t n = random.below(4); n != 0; --n)
            bytes[11 + random.below(53)] = static_cast<std::byte>(random.below(256));
        const auto shape = decode_boot_sector(sector, fat32_bytes);
        if (not shape) continue;
        ++accepted;
        ASSERT_GE(shape->sector_bytes, 512U);
        ASSERT_EQ(shape->cluster_bytes, shape->sector_bytes * shape->sectors_per_cluster);
        ASSERT_LT(shape->active_fat, shape->fat_count);
        ASSERT_LE(shape->fat_copy_offset(shape->fat_count - 1) + shape->fat_bytes, shape->root_offset);
        ASSERT_LE(shape->root_offset + shape->root_entries * 32, shape->data_offset);
        ASSERT_LE(shape->data_offset, shape->volume_bytes);
        if (shape->cluster_count == 0) continue;
        ASSERT_LE(shape->fat_used_bytes(), shape->fat_bytes);
        ASSERT_LE(shape->cluster_offset(shape->last_cluster()) + shape->cluster_bytes, shape->volume_bytes);
        ASSERT_LT(shape->last_cluster(), bad_entry(shape->type));
    }
    EXPECT_GT(accepted, 1000);
}

TEST(info_sector, decodes_as_encoded_without_impossible_values) {
    const geometry shape = *decode_boot_sector(fat32_boot_sector(), fat32_bytes);
    const volume_info info{.free_count = 1234, .next_free = 77};
    EXPECT_EQ(decode_info(encode_info(info), shape), info);
    EXPECT_EQ(decode_info(encode_info({}), shape), volume_info{});
    EXPECT_EQ(decode_info(encode_info({.free_count = 70'001, .next_free = 1}), shape), volume_info{});
    info_sector other = encode_info(info);
    other.signature = le32(0);
    EXPECT_FALSE(decode_info(other, shape));
}

}  // namespace
}  // namespace sluice::fat
