#include "sluice/fat/edit/format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "sluice/fat/device/file_device.hpp"
#include "sluice/fat/device/memory_device.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fat {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t gib = 1024 * mib;

// The expected plan for a size. A cluster size of 0 leaves the choice to plan_format.
struct sample {
    std::uint64_t bytes;
    fat_type type;
    std::uint32_t sector = 512;
    std::uint32_t cluster = 0;
};
const sample samples[] = {{128 * kib, fat_type::fat12},
                          {160 * kib, fat_type::fat12},
                          {360 * kib, fat_type::fat12},
                          {720 * kib, fat_type::fat12},
                          {1440 * kib, fat_type::fat12},
                          {2880 * kib, fat_type::fat12},
                          {3 * mib, fat_type::fat12},
                          {30 * mib, fat_type::fat12, 512, 8192},
                          {4300800 + 512, fat_type::fat16},
                          {16 * mib, fat_type::fat16},
                          {100'000'000, fat_type::fat16},
                          {512 * mib, fat_type::fat16},
                          {2 * gib - 4 * mib, fat_type::fat16, 512, 32768},
                          {34 * mib, fat_type::fat32, 512, 512},
                          {513 * mib, fat_type::fat32},
                          {5 * gib + 12345, fat_type::fat32},
                          {64 * gib, fat_type::fat32},
                          {20 * mib, fat_type::fat12, 4096},
                          {64 * mib, fat_type::fat16, 2048},
                          {2 * gib, fat_type::fat32, 4096},
                          {2 * gib, fat_type::fat32, 1024}};

format_options options_of(const sample& each) {
    format_options options;
    options.sector_bytes = each.sector;
    if (each.cluster != 0) options.cluster_bytes = each.cluster;
    options.type = each.type;
    options.label = *encode_label("sample");
    options.serial = 0xcafe'f00d;
    return options;
}

// Checks the exit status of a tool on the image; shows its output if the status is unexpected.
void expect_tool(const std::string& command, int expected) {
    FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string said;
    std::array<char, 512> room{};
    while (std::fgets(room.data(), room.size(), pipe) != nullptr)
        said += room.data();
    EXPECT_EQ(WEXITSTATUS(::pclose(pipe)), expected) << command << "\n" << said;
}

bool has_tool(const char* name) {
    return std::system((std::string("command -v ") + name + " >/dev/null").c_str()) == 0;
}

TEST(format, creates_volumes_that_fsck_and_mtools_accept) {
    if (not has_tool("fsck.fat") or not has_tool("minfo")) GTEST_SKIP() << "needs dosfstools and mtools";
    const io::test_directory directory("/dev/shm");
    for (const sample& each : samples) {
        SCOPED_TRACE(std::to_string(each.bytes) + " bytes, sectors of " + std::to_string(each.sector));
        const auto plan = plan_format(each.bytes, options_of(each));
        ASSERT_TRUE(plan) << plan.error();
        auto file =
            io::file_handle::open({}, directory.path_of("image"), io::mode::write, io::creation::if_needed);
        ASSERT_TRUE(file and file->truncate(0) and file->truncate(each.bytes));
        file_device image = file_device::over(*std::move(file)).value();
        ASSERT_TRUE(format(image, *plan));
        EXPECT_EQ(plan->shape.type, each.type);
        expect_tool("fsck.fat -n -v " + directory.path_of("image"), 0);
        expect_tool("minfo -i " + directory.path_of("image") + " ::", 0);
        expect_tool("mlabel -s -i " + directory.path_of("image") + " :: | grep -q 'is SAMPLE'", 0);
    }
}

TEST(format, chooses_the_type_of_microsofts_rule_and_avoids_the_limits) {
    for (std::uint64_t bytes = 64 * kib; bytes < 80 * gib; bytes += bytes / 7 + 512)
        for (const std::uint32_t sector : {512U, 1024U, 2048U, 4096U}) {
            format_options options;
            options.sector_bytes = sector;
            const auto plan = plan_format(bytes, options);
            if (not plan) {
                EXPECT_LT(bytes, 300 * kib) << plan.error();  // large sectors in a small image
                continue;
            }
            const std::uint32_t count = plan->shape.cluster_count;
            const fat_type by_count = count < 4085    ? fat_type::fat12
                                      : count < 65525 ? fat_type::fat16
                                                      : fat_type::fat32;
            EXPECT_EQ(plan->shape.type, by_count);
            EXPECT_GE(std::abs(std::int64_t{count} - 4085), 16);
            EXPECT_GE(std::abs(std::int64_t{count} - 65525), 16);
            EXPECT_LE(plan->shape.volume_bytes, bytes);
            EXPECT_LT(bytes - plan->shape.volume_bytes, sector);
            if (bytes > 3 * mib) {
                EXPECT_EQ(plan->shape.data_offset % std::max(4096U, plan->shape.cluster_bytes), 0U);
            }
        }
}

TEST(format, with_the_same_options_writes_the_same_bytes_over_any_content) {
    const auto plan = plan_format(720 * kib, options_of(samples[3])).value();
    memory_device zeros(720 * kib);
    memory_device ones(720 * kib);
    std::ranges::fill(ones.bytes(), std::byte{0xff});
    ASSERT_TRUE(format(zeros, plan) and format(ones, plan));
    EXPECT_TRUE(std::ranges::equal(zeros.bytes().first(plan.shape.data_offset),
                                   ones.bytes().first(plan.shape.data_offset)));
    EXPECT_TRUE(decode_boot_sector(plan.boot, 720 * kib));
}

TEST(format, rejects_impossible_options_and_names_a_possible_value) {
    const auto refusal = [](std::uint64_t bytes, format_options options) {
        const auto plan = plan_format(bytes, options);
        return plan ? "accepted" : plan.error();
    };
    EXPECT_THAT(refusal(mib, {.type = fat_type::fat32}), HasSubstr("must be 65541 to"));
    EXPECT_THAT(refusal(mib, {.type = fat_type::fat32}), HasSubstr("a larger image"));
    EXPECT_THAT(refusal(gib, {.type = fat_type::fat12, .cluster_bytes = 4096}), HasSubstr("larger clusters"));
    EXPECT_THAT(refusal(mib, {.sector_bytes = 300}), HasSubstr("bytes per sector is 300"));
    EXPECT_THAT(refusal(mib, {.sector_bytes = 0, .hidden_bytes = mib}), HasSubstr("bytes per sector is 0"));
    EXPECT_THAT(refusal(mib, {.cluster_bytes = 700}), HasSubstr("bytes per cluster is 700"));
    EXPECT_THAT(refusal(mib, {.cluster_bytes = 256}), HasSubstr("from 512 to 65536"));
    EXPECT_THAT(refusal(mib, {.fat_count = 3}), HasSubstr("number of FATs is 3"));
    EXPECT_THAT(refusal(mib, {.root_entries = 0}), HasSubstr("root entries is 0"));
    EXPECT_THAT(refusal(gib, {.type = fat_type::fat32, .reserved_sectors = 4}), HasSubstr("at least 9"));
    EXPECT_THAT(refusal(1000, {}), HasSubstr("a larger image"));
    EXPECT_THAT(refusal(0, {}), HasSubstr("a larger image"));
    EXPECT_THAT(refusal(3000 * gib, {}), HasSubstr("use larger sectors"));
}

TEST(format, chooses_no_fat32_without_reserved_sectors_for_its_copies) {
    // FAT16 would have too many clusters; FAT32 would not.
    for (const std::uint32_t reserved : {1U, 8U}) {
        const auto plan = plan_format(40 * mib, {.cluster_bytes = 512, .reserved_sectors = reserved});
        EXPECT_FALSE(plan) << reserved;
        const auto large = plan_format(64 * gib, {.reserved_sectors = reserved});
        ASSERT_FALSE(large) << reserved;
        EXPECT_THAT(large.error(), HasSubstr("reserved sectors is " + std::to_string(reserved)));
        EXPECT_THAT(large.error(), HasSubstr("must be at least 9 on FAT32"));
        EXPECT_THAT(large.error(), HasSubstr("use more reserved sectors or a smaller FAT type"));
    }
    EXPECT_EQ(plan_format(40 * mib, {.cluster_bytes = 512, .reserved_sectors = 9})->shape.type,
              fat_type::fat32);
    EXPECT_EQ(plan_format(gib, {.reserved_sectors = 1})->shape.type, fat_type::fat16);
}

TEST(label, is_upper_case_padded_and_has_only_characters_of_all_code_pages) {
    EXPECT_EQ(label_text(*encode_label("my disk")), "MY DISK");
    EXPECT_EQ(*encode_label(""), no_label);
    EXPECT_EQ(label_text(no_label), "");
    EXPECT_THAT(encode_label("twelve chars").error(), HasSubstr("at most 11 bytes, not 12"));
    EXPECT_THAT(encode_label("a.b").error(), HasSubstr("none of"));
    EXPECT_FALSE(encode_label("n\xc3\xa4h"));
    EXPECT_FALSE(encode_label(" x"));
    EXPECT_FALSE(encode_label("a\tb"));
}

}  // namespace
}  // namespace sluice::fat
