#include "sluice/fat/check/boot_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sluice/base/random.hpp"
#include "sluice/fat/check/damaged_image_testing.hpp"
#include "sluice/fat/check/image_testing.hpp"
#include "sluice/fat/check/repair.hpp"

namespace sluice::fat {
namespace {

using testing::HasSubstr;

enum class content : std::uint8_t { tree, small_files };

// A volume with 40 files: in the root and three directories, up to ten clusters long; or all in the
// root, of a cluster each.
class library {
public:
    library(fat_type type, content what) : image_(formatted(kibibytes_of(type), options_of(type))) {
        mounted_image mounted(bytes());
        const std::uint64_t cluster = mounted.shape.cluster_bytes;
        if (what == content::tree)
            for (const char* directory : {"D0", "D1", "D2"})
                EXPECT_TRUE(mounted.system->create(directory, true, attributes::none));
        for (std::size_t i = 0; i != files; ++i) {
            const std::uint64_t size = what == content::tree ? i * cluster / 4 + i : cluster;
            const auto data = pattern(i, size);
            put(*mounted.system, path_of(i, what), {reinterpret_cast<const char*>(data.data()), data.size()});
        }
        EXPECT_TRUE(mounted.system->unmount());
        std::ranges::copy(mounted.image.bytes(), image_.bytes().begin());
        picture_ = now();
    }

    // Everything that is on the volume, as text.
    [[nodiscard]] std::string now() {
        mounted_image mounted(bytes());
        return picture(*mounted.system);
    }
    [[nodiscard]] const std::string& at_first() const { return picture_; }
    [[nodiscard]] std::vector<std::byte> bytes() const { return {image().begin(), image().end()}; }
    [[nodiscard]] std::span<const std::byte> image() const {
        return const_cast<memory_device&>(image_).bytes();
    }

    static constexpr std::size_t files = 40;

private:
    static std::size_t kibibytes_of(fat_type type) { return type == fat_type::fat16 ? 2400 : 1440; }
    static const char* options_of(fat_type type) {
        return type == fat_type::fat12 ? "-F 12" : type == fat_type::fat16 ? "-F 16 -s 1" : "-F 32 -s 1";
    }
    static std::string path_of(std::size_t i, content what) {
        const std::string name = "File number " + std::to_string(i) + ".txt";
        return what == content::tree and i % 4 != 0 ? "D" + std::to_string(i % 4 - 1) + "/" + name : name;
    }

    memory_device image_;
    std::string picture_;
};

// The values that a field gets in turn.
std::vector<std::uint64_t> wrong_values(std::uint64_t right) {
    return {
        0, 1, 3, right + 1, right - 1, right * 2, right / 2, right ^ 0x40, 0x55aa'1234, ~std::uint64_t{0}};
}

void set_field(std::span<std::byte> image, const boot_field& field, std::uint64_t value) {
    const le64 wire(value);
    std::memcpy(image.data() + field.offset, &wire, std::min<std::size_t>(field.bytes, 8));
}

bool is_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
    return a.size() == b.size() and std::memcmp(a.data(), b.data(), a.size()) == 0;
}

boot_sector sector_of(std::span<const std::byte> image) {
    return *bytes_view(image).take_at<boot_sector>(0);
}

// Calls check(image, field) for an image with each wrong value of each field.
template <class Check>
void for_each_wrong_field(const library& of, const Check& check) {
    memory_device image(of.bytes());
    const boot_sector right = sector_of(of.image());
    for (const boot_field& field : boot_fields())
        for (const std::uint64_t value : wrong_values(value_of(right, field))) {
            std::memcpy(image.bytes().data(), of.image().data(), of.image().size());
            set_field(image.bytes(), field, value);
            if (is_same(sector_of(image.bytes()), right, field)) continue;
            SCOPED_TRACE(std::string(field.key) + " = " + std::to_string(value));
            check(image, field);
            if (testing::Test::HasFailure()) return;
        }
}

TEST(boot_choice, restores_each_field_from_the_backup_and_keeps_every_file) {
    for (const content what : {content::tree, content::small_files}) {
        library sample(fat_type::fat32, what);
        const boot_sector right = sector_of(sample.image());
        for_each_wrong_field(sample, [&](memory_device& image, const boot_field& field) {
            const auto report = repair(image);
            ASSERT_TRUE(report);
            EXPECT_TRUE(report->after.is_consistent()) << text_of(report->before) << text_of(report->after);
            // The number of the active FAT has no meaning while all are kept alike, nor the
            // second number of sectors.
            const std::string_view key = field.key;
            const bool may_be_legal =
                key == "flags" or key == "total_sectors_32" or key == "extended_signature";
            const bool is_legal = may_be_legal and report->actions.empty();
            if (not is_legal and (field.role == field_role::layout or field.role == field_role::mark)) {
                EXPECT_TRUE(is_same(sector_of(image.bytes()), right, field)) << text_of(report->before);
            }
            set_field(image.bytes(), field, value_of(right, field));
            EXPECT_TRUE(is_equal(image.bytes(), sample.image())) << text_of(report->before);
        });
    }
}

TEST(boot_choice, a_volume_that_names_another_file_system_is_not_overwritten_by_a_backup) {
    library sample(fat_type::fat32, content::tree);
    for (const std::string_view name : {"EXFAT   ", "NTFS    "}) {
        memory_device image(sample.bytes());
        std::memcpy(image.bytes().data() + 3, name.data(), name.size());
        const std::vector<std::byte> before(image.bytes().begin(), image.bytes().end());
        const auto report = repair(image);
        ASSERT_TRUE(report);
        EXPECT_FALSE(report->after.shape);
        EXPECT_TRUE(is_equal(image.bytes(), before));
        ASSERT_TRUE(repair(image, {.boot = boot_source::backup}));
        EXPECT_TRUE(is_equal(image.bytes(), sample.image()));
    }
}

// Without a backup, repair refuses, or does nothing that matters once the field is right.
TEST(boot_choice, without_a_backup_no_wrong_field_makes_repair_damage_the_volume) {
    for (const content what : {content::tree, content::small_files})
        for (const fat_type type : all_types) {
            SCOPED_TRACE("FAT type " + std::to_string(static_cast<int>(type)) + ", content " +
                         std::to_string(static_cast<int>(what)));
            library sample(type, what);
            for_each_wrong_field(sample, [&](memory_device& image, const boot_field& field) {
                if (type == fat_type::fat32)
                    std::ranges::fill(image.bytes().subspan(6 * 512, 512), std::byte{});
                else if (field.offset >= 36)
                    return;  // has another meaning, or none
                const auto report = repair(image);
                if (not report) return;
                const boot_sector right = sector_of(sample.image());
                std::memcpy(image.bytes().data(), &right, sizeof right);
                if (is_equal(image.bytes(), sample.image())) return;
                mounted_image mounted(std::vector<std::byte>(image.bytes().begin(), image.bytes().end()));
                EXPECT_EQ(picture(*mounted.system), sample.at_first()) << text_of(report->before);
                const auto again = check(image);
                ASSERT_TRUE(again);
                for (const problem& one :
                     again->problems)  // the count is a hint, and follows the number of clusters
                    EXPECT_EQ(one.kind, problem_kind::free_count_wrong)
                        << text_of(report->before) << text_of(*again);
            });
        }
}

}  // namespace
}  // namespace sluice::fat
