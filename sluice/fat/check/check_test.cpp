#include "sluice/fat/check/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/random.hpp"
#include "sluice/fat/check/damaged_image_testing.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fat {
namespace {

using testing::HasSubstr;

int fsck(sample_volume& volume, std::string& said) {
    const io::test_directory directory("/dev/shm");
    volume.save(directory.path_of("image"));
    return status_of("fsck.fat -n " + directory.path_of("image"), said);
}

TEST(check, reports_no_problem_of_a_consistent_volume) {
    for (const fat_type type : all_types) {
        sample_volume volume(type);
        const auto report = check(volume.image());
        ASSERT_TRUE(report);
        EXPECT_TRUE(report->problems.empty()) << text_of(*report);
        EXPECT_TRUE(report->is_consistent());
        EXPECT_EQ(report->files, 3U);
        EXPECT_EQ(report->directories, 2U);
        EXPECT_EQ(report->free_clusters, volume.true_free_count());
        std::string said;
        if (has_tool("fsck.fat")) {
            EXPECT_EQ(fsck(volume, said), 0) << said;
        }
    }
}

TEST(check, finds_each_damage_and_agrees_with_fsck) {
    for_each_damage([](sample_volume& volume, const sample_damage& damage) {
        const auto report = check(volume.image());
        ASSERT_TRUE(report);
        EXPECT_TRUE(report->has(damage.kind)) << text_of(*report);
        EXPECT_FALSE(report->is_consistent());
        std::string said;
        if (has_tool("fsck.fat")) {
            EXPECT_EQ(fsck(volume, said) != 0, damage.is_seen_by_fsck) << said;
        }
    });
}

TEST(check, uses_the_backup_of_an_invalid_boot_sector) {
    sample_volume volume(fat_type::fat32);
    std::ranges::fill(volume.image().bytes().first(512), std::byte{});
    const auto report = check(volume.image());
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->has(problem_kind::boot_sector_bad));
    EXPECT_EQ(report->files, 3U);
}

TEST(check, reports_why_an_image_has_no_volume) {
    memory_device empty(4096);
    const auto report = check(empty);
    ASSERT_TRUE(report);
    EXPECT_FALSE(report->is_consistent());
    EXPECT_THAT(text_of(*report), HasSubstr("all zeros"));
    EXPECT_THAT(json_of(*report), HasSubstr("\"refusal\":"));
}

TEST(check, reports_that_an_image_is_truncated) {
    for (const fat_type type : all_types) {
        sample_volume volume(type);
        const auto bytes = volume.image().bytes();
        memory_device cut(std::vector<std::byte>(
            bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(volume.shape.volume_bytes / 2)));
        const auto report = check(cut);
        ASSERT_TRUE(report);
        EXPECT_TRUE(report->has(problem_kind::image_is_short));
        memory_device within_fat(
            std::vector<std::byte>(bytes.begin(), bytes.begin() + volume.shape.fat_offset + 99));
        EXPECT_FALSE(check(within_fat));
    }
}

TEST(check, names_both_objects_that_share_a_cluster) {
    sample_volume volume(fat_type::fat16);
    volume.fat(21, 6);
    const auto report = check(volume.image());
    ASSERT_TRUE(report);
    const auto found = std::ranges::find(report->problems, problem_kind::cross_link, &problem::kind);
    ASSERT_NE(found, report->problems.end());
    EXPECT_EQ(found->message(), "/SUB/TWO.BIN: shares, after cluster 21, cluster 6 with /ONE.TXT");
    EXPECT_THAT(json_of(*report),
                HasSubstr("{\"kind\":\"cross_link\",\"severity\":\"damage\",\"path\":"
                          "\"/SUB/TWO.BIN\",\"other\":\"/ONE.TXT\",\"cluster\":21,\"value\":6"));
}

TEST(check, writes_json_for_names_of_any_bytes) {
    sample_volume volume(fat_type::fat12);
    volume.change(volume.root_slot(volume.one),
                  [](auto& entry) { entry.name = {'"', '\\', 1, 0xff, 0x80, 'x', ' ', ' ', ' ', ' ', ' '}; });
    const auto report = check(volume.image());
    ASSERT_TRUE(report);
    EXPECT_THAT(json_of(*report), HasSubstr("/\\\"\\\\\\u0001"));
}

TEST(check, lists_at_most_the_requested_number_of_problems) {
    sample_volume volume(fat_type::fat16);
    for (std::uint32_t i = 0; i != 10; ++i)
        volume.put(volume.root_slot(volume.unused + i), "ONE     TXT", attributes::archive, 0, 0);
    const auto report = check(volume.image(), {.problems_max = 3});
    ASSERT_TRUE(report);
    EXPECT_EQ(report->problems.size(), 3U);
    EXPECT_EQ(report->problems_left_out, 7U);
    EXPECT_FALSE(report->is_consistent());
}

// The check ends for any content of the sectors that it reads, and reads nothing outside the image.
TEST(check, ends_on_any_bytes) {
    seeded_random random(11);
    sample_volume volume(fat_type::fat12);
    const std::vector<std::byte> original(volume.image().bytes().begin(), volume.image().bytes().end());
    for (int i = 0; i != 300; ++i) {
        std::memcpy(volume.image().bytes().data(), original.data(), original.size());
        const geometry shape = volume.shape;
        const std::uint64_t starts[] = {0, shape.fat_offset, shape.root_offset, shape.cluster_offset(12)};
        for (std::uint64_t n = 1 + random.below(20); n != 0; --n)
            volume.at(starts[random.below(4)] + random.below(256)) =
                static_cast<std::byte>(random.below(256));
        const auto report = check(volume.image());
        if (report) {
            EXPECT_FALSE(text_of(*report).empty());
        }
    }
}

}  // namespace
}  // namespace sluice::fat
