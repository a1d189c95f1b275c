#include "sluice/io/path/fs_location.hpp"

#include <filesystem>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

namespace fs = std::filesystem;
using fs_location_on = on_each_volume;

file_handle create(const path_handle& base, path_view name) {
    return file_handle::open(base, name, mode::write, creation::if_needed).value();
}

TEST_P(fs_location_on, relink_renames_the_open_file_even_after_others_have_renamed_it) {
    const auto file = create(directory.anchor(), "first");
    fs::rename(directory.path_of("first"), directory.path_of("second"));
    (void)create(directory.anchor(), "first");
    const auto renamed = relink(file, directory.anchor(), "third");
    ASSERT_TRUE(renamed) << renamed.error().message();
    EXPECT_TRUE(status_of(file)->is_same_inode(status_at(directory.anchor(), "third").value()));
    EXPECT_TRUE(directory.exists("first"));
    EXPECT_FALSE(directory.exists("second"));
}

TEST_P(fs_location_on, relink_replaces_only_on_request) {
    const auto file = create(directory.anchor(), "file");
    directory.write("taken", "old");
    const auto refused = relink(file, directory.anchor(), "taken", replace::no);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(), "taken: rename: File exists");
    EXPECT_EQ(directory.content("taken"), "old");
    ASSERT_TRUE(relink(file, directory.anchor(), "taken", replace::yes));
    EXPECT_EQ(directory.content("taken"), "");
    EXPECT_EQ(directory.entry_count(), 1U);
}

TEST_P(fs_location_on, relink_moves_directories_but_not_into_themselves) {
    const auto below =
        directory_handle::open(directory.anchor(), "directory", mode::read, creation::if_needed).value();
    directory.write("directory/file", "");
    EXPECT_EQ(relink(below, below, "inside").error(), std::errc::invalid_argument);
    EXPECT_EQ(relink(below, below, "inside", replace::no).error(), std::errc::invalid_argument);
    ASSERT_TRUE(relink(below, directory.anchor(), "moved", replace::no));
    EXPECT_TRUE(directory.exists("moved/file"));
}

TEST_P(fs_location_on, relink_out_of_a_confined_directory_is_refused) {
    fs::create_directories(directory.path_of("share"));
    fs::create_symlink("..", directory.path_of("share/out"));
    const auto share = path_handle::open(directory.anchor(), "share", confinement::beneath).value();
    const auto file = create(share, "file");
    EXPECT_EQ(relink(file, share, "../file").error(), std::errc::cross_device_link);
    EXPECT_EQ(relink(file, share, "out/file").error(), std::errc::cross_device_link);
    EXPECT_EQ(relink(file, share, "..").error(), std::errc::invalid_argument);
    EXPECT_EQ(link(file, share, "out/file").error(), std::errc::cross_device_link);
    EXPECT_EQ(remove(share, "out/share").error(), std::errc::cross_device_link);
    EXPECT_TRUE(relink(file, share, "out")) << "replaces the link itself";
    EXPECT_TRUE(directory.exists("share/out"));
}

TEST_P(fs_location_on, a_file_without_a_name_gets_one) {
    const auto file = file_handle::temp_inode(directory.anchor()).value();
    ASSERT_EQ(unlink(file).error(), std::errc::no_such_file_or_directory);
    const auto named = relink(file, directory.anchor(), "name", replace::no);
    ASSERT_TRUE(named) << named.error().message();
    EXPECT_TRUE(status_of(file)->is_same_inode(status_at(directory.anchor(), "name").value()));
}

TEST_P(fs_location_on, a_file_without_a_name_replaces_an_existing_file) {
    directory.write("name", "old");
    const auto file = file_handle::temp_inode(directory.anchor()).value();
    EXPECT_EQ(relink(file, directory.anchor(), "name", replace::no).error(), std::errc::file_exists);
    ASSERT_TRUE(relink(file, directory.anchor(), "name", replace::yes));
    EXPECT_EQ(directory.content("name"), "");
    EXPECT_EQ(directory.entry_count(), 1U);
}

TEST_P(fs_location_on, unlink_removes_the_present_name_and_no_other) {
    const auto file = create(directory.anchor(), "file");
    fs::rename(directory.path_of("file"), directory.path_of("renamed"));
    directory.write("file", "another");
    ASSERT_TRUE(unlink(file));
    EXPECT_FALSE(directory.exists("renamed"));
    EXPECT_TRUE(directory.exists("file"));
    EXPECT_EQ(unlink(file).error(), std::errc::no_such_file_or_directory);
}

TEST_P(fs_location_on, unlink_with_a_path_removes_the_open_file_even_if_it_was_renamed) {
    std::filesystem::create_directory(directory.path_of("d"));
    const auto right = create(directory.anchor(), "d/right");
    ASSERT_TRUE(unlink(right, directory.anchor(), "d/right"));
    EXPECT_FALSE(directory.exists("d/right"));
    EXPECT_EQ(unlink(right, directory.anchor(), "d/right").error(), std::errc::no_such_file_or_directory);

    const auto moved = create(directory.anchor(), "first");
    fs::rename(directory.path_of("first"), directory.path_of("second"));
    directory.write("first", "another");
    ASSERT_TRUE(unlink(moved, directory.anchor(), "first"));
    EXPECT_EQ(directory.content("first"), "another");
    EXPECT_FALSE(directory.exists("second"));

    const auto lost = create(directory.anchor(), "third");
    ASSERT_TRUE(unlink(lost, directory.anchor(), "missing/third"));
    EXPECT_FALSE(directory.exists("third"));
}

TEST_P(fs_location_on, unlink_with_the_path_of_another_name_removes_the_one_it_was_opened_by) {
    const auto file = create(directory.anchor(), "opened");
    fs::create_hard_link(directory.path_of("opened"), directory.path_of("second name"));
    ASSERT_TRUE(unlink(file, directory.anchor(), "second name"));
    EXPECT_FALSE(directory.exists("opened"));
    EXPECT_TRUE(directory.exists("second name"));
}

TEST_P(fs_location_on, a_name_that_was_removed_by_others_is_not_confused_with_its_successor) {
    const auto file = create(directory.anchor(), "file");
    fs::create_hard_link(directory.path_of("file"), directory.path_of("second name"));
    fs::remove(directory.path_of("file"));
    directory.write("file", "successor");
    EXPECT_EQ(unlink(file).error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(directory.content("file"), "successor");
    EXPECT_TRUE(directory.exists("second name"));
}

TEST_P(fs_location_on, a_name_that_ends_like_the_kernels_mark_of_deleted_files_is_a_name) {
    const auto file = create(directory.anchor(), "file (deleted)");
    ASSERT_TRUE(unlink(file));
    EXPECT_EQ(directory.entry_count(), 0U);
    const auto longest = create(directory.anchor(), std::string(limits::name_bytes_max, 'n'));
    ASSERT_TRUE(unlink(longest));
    EXPECT_EQ(unlink(longest).error(), std::errc::no_such_file_or_directory);
}

TEST_P(fs_location_on, unlink_removes_empty_directories_only) {
    const auto below =
        directory_handle::open(directory.anchor(), "directory", mode::read, creation::if_needed).value();
    directory.write("directory/file", "");
    EXPECT_EQ(unlink(below).error(), std::errc::directory_not_empty);
    ASSERT_TRUE(remove(below, "file"));
    EXPECT_TRUE(unlink(below));
    EXPECT_EQ(directory.entry_count(), 0U);
}

TEST_P(fs_location_on, a_link_is_one_more_name_of_the_same_inode) {
    const auto file = create(directory.anchor(), "file");
    ASSERT_TRUE(link(file, directory.confined(), "second"));
    EXPECT_EQ(status_of(file).value().links, 2U);
    EXPECT_EQ(link(file, directory.anchor(), "second").error(), std::errc::file_exists);
}

TEST_P(fs_location_on, remove_distinguishes_files_and_directories) {
    fs::create_directories(directory.path_of("directory"));
    directory.write("file", "");
    EXPECT_EQ(remove(directory.anchor(), "directory").error(), std::errc::is_a_directory);
    EXPECT_EQ(remove_directory(directory.anchor(), "file").error(), std::errc::not_a_directory);
    EXPECT_TRUE(remove(directory.confined(), "file"));
    EXPECT_TRUE(remove_directory(directory.confined(), "directory/"));
    EXPECT_EQ(remove(directory.anchor(), "file").error().message(),
              "file: remove: No such file or directory");
}

TEST(fs_location, a_handle_without_a_path_cannot_be_unlinked) {
    EXPECT_EQ(unlink(handle()).error(), std::errc::bad_file_descriptor);
    const auto root = path_handle::open("/").value();
    EXPECT_EQ(unlink(root).error(), std::errc::device_or_resource_busy);
}

SLUICE_ON_EACH_VOLUME(fs_location_on);

}  // namespace
}  // namespace sluice::io
