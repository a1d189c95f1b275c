#include "sluice/io/path/symlink_handle.hpp"

#include <array>
#include <filesystem>

#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

namespace fs = std::filesystem;
using symlink_handle_on = on_each_volume;

std::string target_of(const symlink_handle& link) {
    std::array<char, limits::path_bytes_max> storage{};
    const auto target = link.target(storage);
    return target ? std::string(*target) : target.error().message();
}

TEST_P(symlink_handle_on, a_new_link_returns_its_target) {
    const auto link = symlink_handle::create(directory.anchor(), "link", "some/where");
    ASSERT_TRUE(link) << link.error().message();
    EXPECT_EQ(target_of(*link), "some/where");
    EXPECT_EQ(status_of(*link).value().type, file_type::symlink);
    EXPECT_EQ(target_of(symlink_handle::open(directory.anchor(), "link").value()), "some/where");
}

TEST_P(symlink_handle_on, creation_decides_what_happens_to_an_existing_link) {
    const auto& base = directory.anchor();
    ASSERT_TRUE(symlink_handle::create(base, "link", "first"));
    EXPECT_EQ(symlink_handle::create(base, "link", "second").error(), std::errc::file_exists);
    EXPECT_EQ(target_of(symlink_handle::create(base, "link", "second", creation::if_needed).value()),
              "first");
    EXPECT_EQ(target_of(symlink_handle::create(base, "link", "second", creation::always_new).value()),
              "second");
    EXPECT_EQ(directory.entry_count(), 1U);
    fs::create_directory(directory.path_of("directory"));
    EXPECT_EQ(symlink_handle::create(base, "directory", "x", creation::always_new).error(),
              std::errc::is_a_directory);
    EXPECT_EQ(directory.entry_count(), 2U);
}

TEST_P(symlink_handle_on, a_file_that_is_not_a_link_is_not_opened_as_one) {
    directory.write("file", "");
    EXPECT_EQ(symlink_handle::open(directory.anchor(), "file").error(), std::errc::invalid_argument);
}

TEST_P(symlink_handle_on, a_target_longer_than_the_storage_is_an_error_not_a_part) {
    const auto link = symlink_handle::create(directory.anchor(), "link", "0123456789").value();
    std::array<char, 10> exactly{};
    EXPECT_EQ(link.target(exactly).error(), std::errc::filename_too_long);
    std::array<char, 11> one_more{};
    EXPECT_EQ(link.target(one_more).value(), "0123456789");
}

TEST_P(symlink_handle_on, it_can_be_renamed_and_removed_without_touching_its_target) {
    directory.write("target", "x");
    const auto link = symlink_handle::create(directory.anchor(), "link", "target").value();
    ASSERT_TRUE(relink(link, directory.anchor(), "renamed", replace::no));
    EXPECT_FALSE(directory.exists("link"));
    ASSERT_TRUE(unlink(link));
    EXPECT_FALSE(directory.exists("renamed"));
    EXPECT_TRUE(directory.exists("target"));
}

TEST_P(symlink_handle_on, a_link_that_leads_outside_can_be_read_though_not_followed) {
    const auto strict = directory.confined(confinement::beneath_no_symlinks);
    const auto link = symlink_handle::create(strict, "link", "/etc/passwd");
    ASSERT_TRUE(link) << link.error().message();
    EXPECT_EQ(target_of(*link), "/etc/passwd");
    EXPECT_EQ(status_at(directory.confined(), "link", follow::yes).error(), std::errc::cross_device_link);
    EXPECT_EQ(status_at(strict, "link").value().type, file_type::symlink);
    // A slash after a name makes the kernel follow it.
    EXPECT_EQ(status_at(directory.confined(), "link/").error(), std::errc::cross_device_link);
}

SLUICE_ON_EACH_VOLUME(symlink_handle_on);

}  // namespace
}  // namespace sluice::io
