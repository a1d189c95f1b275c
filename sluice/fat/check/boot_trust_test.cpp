#include "sluice/fat/check/boot_trust.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/fat/check/boot_choice.hpp"
#include "sluice/fat/check/damaged_image_testing.hpp"
#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/check/repair.hpp"
#include "sluice/fat/codec/boot_fields.hpp"

namespace sluice::fat {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t backup_offset = 6 * 512;

// Counts the bytes that are read.
class counting_device final : public device {
public:
    explicit counting_device(memory_device& below) : below_(below) {}
    [[nodiscard]] std::uint64_t size_bytes() const noexcept override { return below_.size_bytes(); }
    [[nodiscard]] bool is_writable() const noexcept override { return false; }
    [[nodiscard]] result<void> read_at(std::uint64_t offset, io::buffers_type pieces) noexcept override {
        for (const io::buffer& each : pieces)
            bytes_read += each.size();
        return below_.read_at(offset, pieces);
    }
    [[nodiscard]] result<void> write_at(std::uint64_t, io::const_buffers_type) noexcept override {
        return failure({EROFS, "write"});
    }
    [[nodiscard]] result<void> barrier(io::barrier_kind) noexcept override { return {}; }
    [[nodiscard]] result<void> punch_hole(byte_extent) noexcept override {
        return failure({EROFS, "punch hole"});
    }
    using device::read_at;
    using device::write_at;

    std::size_t bytes_read = 0;

private:
    memory_device& below_;
};

// FAT32 with some files.
memory_device sample() {
    mounted_image mounted(formatted(1440, "-F 32 -s 1"));
    for (int i = 0; i != 30; ++i)
        put(*mounted.system, "file " + std::to_string(i),
            std::string(static_cast<std::size_t>(i) * 100, 'x'));
    EXPECT_TRUE(mounted.system->unmount());
    return memory_device({mounted.image.bytes().begin(), mounted.image.bytes().end()});
}

void set(memory_device& image, std::uint64_t at, const char* key, std::uint64_t value) {
    const boot_field& field = boot_field_of(key);
    const le64 wire(value);
    std::memcpy(image.bytes().data() + at + field.offset, &wire, std::min<std::size_t>(field.bytes, 8));
}

TEST(boot_trust, a_boot_sector_that_agrees_with_its_backup_is_consistent_after_two_sectors) {
    memory_device image = sample();
    counting_device counted(image);
    const auto found = assess_boot_sector(counted);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->trust, boot_trust::consistent);
    EXPECT_EQ(counted.bytes_read, 2 * sizeof(boot_sector));
}

TEST(boot_trust, volumes_without_a_backup_are_consistent_after_a_few_sectors) {
    for (const char* options : {"-F 12", "-F 16 -s 1"}) {
        memory_device image(formatted(2400, options));
        counting_device counted(image);
        const auto found = assess_boot_sector(counted);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->trust, boot_trust::consistent);
        EXPECT_LE(counted.bytes_read, 6 * sizeof(boot_sector));
    }
}

TEST(boot_trust, a_field_that_the_volume_contradicts_is_wrong_and_named_with_both_values) {
    for (const auto& [key, value, text] :
         {std::tuple("sectors_per_cluster", 2U, "sectors per cluster 2 instead of 1"),
          std::tuple("reserved_sectors", 40U, "reserved sectors 40 instead of 32"),
          std::tuple("root_cluster", 9U, "the first cluster of the root 9 instead of 2"),
          std::tuple("fat_count", 1U, "number of FATs 1 instead of 2")}) {
        memory_device image = sample();
        set(image, 0, key, value);
        const auto found = assess_boot_sector(image);
        ASSERT_TRUE(found) << key;
        EXPECT_EQ(found->trust, boot_trust::wrong) << key;
        EXPECT_THAT(found->differences, HasSubstr(text));
    }
}

TEST(boot_trust, a_field_that_makes_fat32_look_like_fat16_is_wrong) {
    memory_device image = sample();
    set(image, 0, "fat_sectors_16", 12);
    set(image, 0, "root_entries", 512);
    ASSERT_NE(read_geometry(image)->type, fat_type::fat32);
    const auto found = assess_boot_sector(image);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->trust, boot_trust::wrong);
}

TEST(boot_trust, a_wrong_backup_is_harmless) {
    memory_device image = sample();
    set(image, backup_offset, "sectors_per_cluster", 2);
    const auto found = assess_boot_sector(image);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->trust, boot_trust::consistent);
}

TEST(boot_trust, an_illegal_boot_sector_is_refused_with_the_place_of_its_backup) {
    memory_device image = sample();
    set(image, 0, "sectors_per_cluster", 0);
    const auto found = assess_boot_sector(image);
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error(), HasSubstr("byte 3072 has a backup of the boot sector"));
}

TEST(boot_trust, repair_by_the_first_boot_sector_makes_the_backup_agree) {
    memory_device image = sample();
    set(image, backup_offset, "sectors_per_cluster", 2);
    const auto done = repair(image, {.boot = boot_source::first});
    ASSERT_TRUE(done);
    EXPECT_THAT(done->actions, testing::ElementsAre("copied the boot sector over its backup"));
    EXPECT_EQ(std::memcmp(image.bytes().data(), image.bytes().data() + backup_offset, sizeof(boot_sector)),
              0);
}

}  // namespace
}  // namespace sluice::fat
