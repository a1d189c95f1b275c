#include "sluice/io/path/path_handle.hpp"

#include <atomic>
#include <filesystem>
#include <thread>

#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

namespace fs = std::filesystem;
using path_handle_on = on_each_volume;

TEST_P(path_handle_on, opens_a_directory_relative_to_another) {
    fs::create_directories(directory.path_of("a/b"));
    const auto a = path_handle::open(directory.anchor(), "a");
    ASSERT_TRUE(a) << a.error().message();
    EXPECT_TRUE(path_handle::open(*a, "b"));
    EXPECT_TRUE(path_handle::open(*a, "../a/b"));
}

TEST_P(path_handle_on, follows_its_directory_through_a_rename) {
    fs::create_directories(directory.path_of("old/inside"));
    const auto anchor = path_handle::open(directory.anchor(), "old").value();
    fs::rename(directory.path_of("old"), directory.path_of("new"));
    EXPECT_TRUE(path_handle::open(anchor, "inside"));
    EXPECT_EQ(anchor.current_path().value(), fs::canonical(directory.path_of("new")).string());
}

TEST_P(path_handle_on, a_name_that_looks_like_the_kernels_remark_is_kept) {
    const fs::path name = directory.path_of("x (deleted)");
    fs::create_directories(name);
    const auto anchor = path_handle::open(directory.anchor(), "x (deleted)").value();
    EXPECT_EQ(anchor.current_path().value(), fs::canonical(name).string());
    fs::remove(name);
    EXPECT_EQ(anchor.current_path().error(), std::errc::no_such_file_or_directory);
    fs::create_directories(name);  // another of that name
    EXPECT_EQ(anchor.current_path().error(), std::errc::no_such_file_or_directory);
}

TEST_P(path_handle_on, a_file_is_not_a_directory_and_the_message_names_it) {
    directory.write("file", "");
    const auto opened = path_handle::open(directory.anchor(), "file");
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().message(), "file: open: Not a directory");
}

TEST_P(path_handle_on, confined_it_cannot_be_left_by_dots_links_or_absolute_paths) {
    fs::create_directories(directory.path_of("share/inner"));
    fs::create_directories(directory.path_of("outside"));
    fs::create_directory_symlink("../outside", directory.path_of("share/relative"));
    fs::create_directory_symlink(directory.path_of("outside"), directory.path_of("share/absolute"));
    fs::create_directory_symlink("inner/../../outside", directory.path_of("share/detour"));
    const auto share = path_handle::open(directory.anchor(), "share", confinement::beneath).value();
    for (const char* path :
         {"..", "../outside", "inner/../..", "relative", "absolute", "detour", "/", "/tmp"}) {
        const auto opened = path_handle::open(share, path);
        ASSERT_FALSE(opened) << path;
        EXPECT_EQ(opened.error(), std::errc::cross_device_link) << path;
    }
}

TEST_P(path_handle_on, confined_it_can_still_be_walked_within) {
    fs::create_directories(directory.path_of("share/inner"));
    fs::create_directory_symlink("inner", directory.path_of("share/link"));
    const auto share = path_handle::open(directory.anchor(), "share", confinement::beneath).value();
    for (const char* path : {".", "inner", "inner/..", "link", "link/../inner/."})
        EXPECT_TRUE(path_handle::open(share, path)) << path;
    const auto strict =
        path_handle::open(directory.anchor(), "share", confinement::beneath_no_symlinks).value();
    EXPECT_EQ(path_handle::open(strict, "link").error(), std::errc::too_many_symbolic_link_levels);
    EXPECT_TRUE(path_handle::open(strict, "inner/.."));
}

TEST(path_handle, confined_it_goes_through_no_magic_link) {
    const auto proc = path_handle::open("/proc/self", confinement::beneath).value();
    EXPECT_EQ(path_handle::open(proc, "cwd").error(), std::errc::too_many_symbolic_link_levels);
    EXPECT_EQ(path_handle::open(proc, "root/tmp").error(), std::errc::too_many_symbolic_link_levels);
}

TEST_P(path_handle_on, confinement_is_inherited_and_never_loosened) {
    fs::create_directories(directory.path_of("a/b"));
    const auto strict = directory.confined(confinement::beneath_no_symlinks);
    const auto a = path_handle::open(strict, "a", confinement::none).value();
    EXPECT_EQ(a.confined(), confinement::beneath_no_symlinks);
    EXPECT_EQ(path_handle::open(a, "..").error(), std::errc::cross_device_link);
}

TEST_P(path_handle_on, a_moved_from_confined_one_is_refused_instead_of_meaning_the_current_directory) {
    auto share = directory.confined();
    const path_handle taken = std::move(share);
    // NOLINTNEXTLINE: moved from
    EXPECT_EQ(path_handle::open(share, ".").error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(status_at(share, "x").error(), std::errc::bad_file_descriptor);
}

TEST_P(path_handle_on, names_with_zeros_in_them_and_too_long_ones_are_refused_by_name) {
    using namespace std::string_view_literals;
    const auto zero = path_handle::open(directory.anchor(), "a\0b"sv);
    ASSERT_FALSE(zero);
    EXPECT_EQ(zero.error(), std::errc::invalid_argument);
    const auto too_long = path_handle::open(directory.anchor(), std::string(limits::path_bytes_max, 'x'));
    ASSERT_FALSE(too_long);
    EXPECT_EQ(too_long.error(), std::errc::filename_too_long);
    EXPECT_NE(too_long.error().message().find("xxxx:"), std::string::npos);
}

TEST_P(path_handle_on, accepts_a_part_of_a_longer_text_as_a_path) {
    fs::create_directories(directory.path_of("a"));
    const std::string_view text = "a/b/c";
    EXPECT_TRUE(path_handle::open(directory.anchor(), text.substr(0, 1)));
    EXPECT_TRUE(path_handle::open(directory.anchor(), fs::path("a")));
}

TEST_P(path_handle_on, a_confined_open_ends_in_spite_of_continual_renames) {
    fs::create_directories(directory.path_of("a/b/c"));
    const auto share = directory.confined();
    std::atomic<bool> done = false;
    std::thread renamer([&] {
        while (not done.load(std::memory_order_relaxed)) {
            fs::rename(directory.path_of("a/b/c"), directory.path_of("a/b/d"));
            fs::rename(directory.path_of("a/b/d"), directory.path_of("a/b/c"));
        }
    });
    unsigned opened_count = 0;
    for (int i = 0; i < 2000; ++i) {
        const auto opened = path_handle::open(share, "a/b/../b/../b/../../a");
        // A different file is renamed, so the only failure is EAGAIN.
        if (opened)
            ++opened_count;
        else
            ASSERT_EQ(opened.error(), std::errc::resource_unavailable_try_again);
    }
    done.store(true, std::memory_order_relaxed);
    renamer.join();
    EXPECT_GT(opened_count, 1900U);
}

TEST(path_handle, the_default_one_is_the_current_directory) {
    EXPECT_EQ(path_handle::open(".").value().current_path().value(), fs::current_path().string());
    EXPECT_TRUE(path_handle::temporary_files());
}

SLUICE_ON_EACH_VOLUME(path_handle_on);

}  // namespace
}  // namespace sluice::io
