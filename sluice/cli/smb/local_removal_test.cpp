#include "sluice/cli/smb/local_removal.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sluice/io/path/file_status.hpp"
#include "sluice/smb/wire/fscc/filetime.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

class local_removal : public testing::Test {
protected:
    local_removal() {
        std::string made = (fs::temp_directory_path() / "sluice-removal-XXXXXX").string();
        root_ = ::mkdtemp(made.data());
        auto anchor = io::path_handle::open(root_.string());
        EXPECT_TRUE(anchor);
        auto confined = io::path_handle::open(*anchor, ".", io::confinement::beneath_one_mount_no_symlinks);
        EXPECT_TRUE(confined);
        confined_ = std::move(*confined);
    }
    ~local_removal() override { fs::remove_all(root_); }

    void write(const std::string& below, const std::string& text) const {
        std::ofstream(root_ / below) << text;
    }
    [[nodiscard]] sync_entry listed(const std::string& path) const {
        const auto status = io::status_at(confined_, path);
        EXPECT_TRUE(status);
        const bool is_directory = status->type == io::file_type::directory;
        return {.path = path,
                .is = is_directory ? sync_entry::kind::directory : sync_entry::kind::file,
                .bytes = status->size_bytes,
                .modified = smb::wire::filetime_of(status->modified).ticks};
    }
    [[nodiscard]] bool exists(const std::string& below) const {
        return fs::exists(fs::symlink_status(root_ / below));
    }

    fs::path root_;
    io::path_handle confined_;
};

TEST_F(local_removal, removes_a_listed_file_and_directory) {
    write("f", "f");
    fs::create_directory(root_ / "d");
    EXPECT_EQ(remove_unchanged(confined_, "f", listed("f"), {}), std::nullopt);
    EXPECT_EQ(remove_unchanged(confined_, "d", listed("d"), {}), std::nullopt);
    EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(local_removal, keeps_a_file_that_was_changed_after_the_list) {
    write("f", "old");
    const sync_entry before = listed("f");
    write("f", "longer");
    EXPECT_EQ(remove_unchanged(confined_, "f", before, {}), "was changed, so it is not removed");
    write("f", "new");
    fs::last_write_time(root_ / "f", fs::last_write_time(root_ / "f") + std::chrono::seconds(1));
    EXPECT_EQ(remove_unchanged(confined_, "f", before, {}), "was changed, so it is not removed");
    fs::remove(root_ / "f");
    fs::create_directory(root_ / "f");
    EXPECT_EQ(remove_unchanged(confined_, "f", before, {}), "was changed, so it is not removed");
    EXPECT_TRUE(exists("f"));
}

TEST_F(local_removal, removes_nothing_through_a_link_that_appears_after_the_list) {
    fs::create_directories(root_ / "d");
    fs::create_directories(root_ / "other");
    write("d/f", "f");
    const sync_entry before = listed("d/f");
    fs::rename(root_ / "d", root_ / "moved");
    fs::create_directory_symlink("moved", root_ / "d");
    EXPECT_TRUE(remove_unchanged(confined_, "d/f", before, {}));
    EXPECT_TRUE(exists("moved/f"));
}

TEST_F(local_removal, keeps_a_file_of_the_source_that_has_another_name_here) {
    write("f", "f");
    const auto status = io::status_at(confined_, "f");
    ASSERT_TRUE(status);
    EXPECT_TRUE(remove_unchanged(confined_, "f", listed("f"), {{status->device, status->inode}}));
    EXPECT_TRUE(exists("f"));
}

}  // namespace
}  // namespace sluice::cli
