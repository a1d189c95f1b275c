#include "sluice/cli/smb/partial_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

class partial_files : public testing::Test {
protected:
    void SetUp() override {
        std::string made = (fs::temp_directory_path() / "partial-XXXXXX").string();
        ASSERT_NE(mkdtemp(made.data()), nullptr);
        path = made;
        directory = *io::path_handle::open(path.string());
    }
    ~partial_files() override { fs::remove_all(path); }

    [[nodiscard]] partial_names names() { return partial_names(random, (path / "state" / "key").string()); }
    [[nodiscard]] partial_file::place place() {
        return {.directory = directory, .name = names().name_of("x"), .target = "x"};
    }
    [[nodiscard]] fs::path partial_path() { return path / names().name_of("x"); }
    [[nodiscard]] partial_names::record version(std::uint64_t changed = 1) {
        return names().record_of({.place = "server/share/x", .bytes = 10, .changed = changed});
    }
    void write(partial_file& to, std::string_view text) {
        ASSERT_TRUE(to.file().write(io::io_request<io::const_bytes_type>{std::as_bytes(std::span(text)), 0}));
    }
    [[nodiscard]] static std::string content(const fs::path& of) {
        std::ifstream file(of);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    // An interrupted copy that --resume may continue.
    void leave_behind(std::string_view text) {
        auto part = partial_file::open(place(), version(), false);
        ASSERT_TRUE(part) << part.error().message();
        write(*part, text);
        part->keep();
    }
    [[nodiscard]] bool has_attributes() {
        std::ofstream(path / "probe") << "x";
        return ::setxattr((path / "probe").c_str(), "user.probe", "1", 1, 0) == 0;
    }

    predictable_secrets_for_simulation random{7};
    fs::path path;
    io::path_handle directory;
};

TEST_F(partial_files, have_names_that_only_the_key_of_the_account_gives) {
    const std::string mine = names().name_of("x");
    EXPECT_EQ(mine.size(), std::string_view(".sluice-.part").size() + 32) << "128 bits";
    EXPECT_EQ(names().name_of("x"), mine) << "a later run finds it again";
    EXPECT_NE(names().name_of("y"), mine);
    partial_names other(random, (path / "other" / "key").string());
    EXPECT_NE(other.name_of("x"), mine);
    EXPECT_NE(other.record_of({.place = "server/share/x", .bytes = 10, .changed = 1}), version());
    EXPECT_EQ(fs::status(path / "state" / "key").permissions() & fs::perms::mask,
              fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(partial_files, are_recognised_by_their_names) {
    const std::string name = names().name_of("x");
    EXPECT_TRUE(partial_names::is_one(name));
    for (const std::string& other : {std::string(".sluice-.part"), std::string("x.part"), "x" + name,
                                     name + "x", name.substr(0, 20) + "g" + name.substr(21)})
        EXPECT_FALSE(partial_names::is_one(other)) << other;
}

TEST_F(partial_files, get_names_by_a_new_key_if_others_can_read_the_old_one) {
    const std::string before = names().name_of("x");
    fs::permissions(path / "state" / "key", fs::perms::owner_all | fs::perms::group_read);
    const partial_names now = names();
    EXPECT_FALSE(now.key_problem().empty());
    EXPECT_NE(now.name_of("x"), before);
}

TEST_F(partial_files, have_a_key_in_new_directories_of_this_account_only) {
    const fs::path key = path / "home" / ".local" / "state" / "sluice" / "key";
    EXPECT_EQ(partial_names(random, key.string()).key_problem(), "");
    for (fs::path made = key.parent_path(); made != path; made = made.parent_path())
        EXPECT_EQ(fs::status(made).permissions() & fs::perms::mask, fs::perms::owner_all) << made;
}

TEST_F(partial_files, create_no_directory_in_that_of_another_account) {
    constexpr uid_t another = 65534;
    const fs::path home = path / "home";
    fs::create_directory(home);
    if (::geteuid() != 0 or ::chown(home.c_str(), another, static_cast<gid_t>(-1)) != 0)
        GTEST_SKIP() << "needs root";
    const partial_names found(random, (home / ".local" / "state" / "key").string());
    EXPECT_FALSE(found.key_problem().empty());
    EXPECT_TRUE(fs::is_empty(home));
}

TEST_F(partial_files, get_the_name_of_the_target_when_they_are_complete) {
    std::ofstream(path / "x") << "old";
    auto part = partial_file::open(place(), version(), false);
    ASSERT_TRUE(part) << part.error().message();
    write(*part, "new");
    EXPECT_EQ(content(path / "x"), "old");
    ASSERT_TRUE(part->finish({}));
    EXPECT_EQ(content(path / "x"), "new");
    EXPECT_FALSE(fs::exists(partial_path()));
    EXPECT_LT(::getxattr((path / "x").c_str(), "user.sluice.origin", nullptr, 0), 0);
}

TEST_F(partial_files, are_private_and_take_the_permissions_of_the_file_they_replace) {
    std::ofstream(path / "x") << "old";
    fs::permissions(path / "x", fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
    const auto before = fs::status(path / "x").permissions();
    auto part = partial_file::open(place(), version(), false);
    ASSERT_TRUE(part);
    EXPECT_EQ(fs::status(partial_path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    ASSERT_TRUE(part->finish({}));
    EXPECT_EQ(fs::status(path / "x").permissions(), before);
}

TEST_F(partial_files, are_removed_when_the_copy_fails) {
    {
        auto part = partial_file::open(place(), version(), false);
        ASSERT_TRUE(part);
        write(*part, "half");
        EXPECT_TRUE(fs::exists(partial_path()));
    }
    EXPECT_FALSE(fs::exists(partial_path()));
}

TEST_F(partial_files, are_resumed_only_for_the_version_they_are_a_part_of) {
    if (not has_attributes()) GTEST_SKIP() << "the file system has no extended attributes";
    leave_behind("12345");
    {
        auto same = partial_file::open(place(), version(), true);
        ASSERT_TRUE(same);
        EXPECT_EQ(same->bytes_before(), 5U);
        same->keep();
    }
    auto other = partial_file::open(place(), version(2), true);
    ASSERT_TRUE(other);
    EXPECT_EQ(other->bytes_before(), 0U);
    EXPECT_EQ(content(partial_path()), "");
}

TEST_F(partial_files, without_resume_start_over) {
    leave_behind("12345");
    auto part = partial_file::open(place(), version(), false);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->bytes_before(), 0U);
    EXPECT_EQ(content(partial_path()), "");
}

TEST_F(partial_files, are_written_by_one_copy_at_a_time) {
    auto first = partial_file::open(place(), version(), false);
    ASSERT_TRUE(first);
    for (const bool resumes : {false, true}) {
        const auto second = partial_file::open(place(), version(), resumes);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error(), std::errc::device_or_resource_busy);
    }
    EXPECT_TRUE(first->finish({}));
}

TEST_F(partial_files, never_replace_or_follow_a_file_that_is_not_one) {
    std::ofstream(path / "victim") << "precious";
    const auto is_refused = [&] {
        for (const bool resumes : {false, true}) {
            const auto opened = partial_file::open(place(), version(), resumes);
            if (opened or opened.error() != std::errc::file_exists) return false;
        }
        return fs::exists(fs::symlink_status(partial_path()));
    };
    fs::create_symlink("victim", partial_path());
    EXPECT_TRUE(is_refused()) << "a symbolic link";
    fs::remove(partial_path());
    fs::create_hard_link(path / "victim", partial_path());
    EXPECT_TRUE(is_refused()) << "a second name of a file";
    fs::remove(partial_path());
    fs::create_directory(partial_path());
    EXPECT_TRUE(is_refused()) << "a directory";
    fs::remove(partial_path());
    ASSERT_EQ(::mkfifo(partial_path().c_str(), 0600), 0);
    EXPECT_TRUE(is_refused()) << "a pipe";
    fs::remove(partial_path());
    EXPECT_EQ(content(path / "victim"), "precious");
}

TEST_F(partial_files, that_another_program_renamed_are_not_removed) {
    {
        auto part = partial_file::open(place(), version(), false);
        ASSERT_TRUE(part);
        write(*part, "rescued");
        fs::rename(partial_path(), path / "rescued");
    }
    EXPECT_EQ(content(path / "rescued"), "rescued");
}

}  // namespace
}  // namespace sluice::cli
