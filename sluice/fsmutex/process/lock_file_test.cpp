#include "sluice/fsmutex/process/lock_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "sluice/fsmutex/best_available.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fsmutex {
namespace {

class a_lock_file : public testing::TestWithParam<algorithm> {
protected:
    a_lock_file() : umask_(::umask(077)) {}
    ~a_lock_file() override { ::umask(umask_); }

    void let_directory_be(mode_t mode) const { ASSERT_EQ(::chmod(directory.path().c_str(), mode), 0); }
    [[nodiscard]] auto opened(const file_access& access = {}) const {
        return open(GetParam(), directory.anchor(), "locks", dependencies::of_this_machine(), access);
    }
    [[nodiscard]] struct stat status(const std::string& name = "locks") const {
        struct stat found{};
        EXPECT_EQ(::stat(directory.path_of(name).c_str(), &found), 0);
        return found;
    }
    // Returns the permissions of the file, or those of a directory without search and setgid.
    [[nodiscard]] mode_t mode_after(const file_access& access = {}) const {
        const auto mutex = opened(access).value();
        const auto held = mutex->lock(entity(42)).value();
        if (GetParam() != algorithm::lock_files) return status().st_mode & 07777;
        EXPECT_EQ(status().st_mode & 0666, status("locks/000000000000002a").st_mode & 07777);
        return status().st_mode & 0666;
    }
    [[nodiscard]] std::errc refusal(const file_access& access = {}) const {
        const auto mutex = opened(access);
        return mutex ? std::errc() : static_cast<std::errc>(mutex.error().code());
    }

    io::test_directory directory{"/dev/shm"};

private:
    mode_t umask_;
};

TEST_P(a_lock_file, is_private_in_a_directory_of_one_user) {
    let_directory_be(0755);
    EXPECT_EQ(mode_after(), 0600U);
}

TEST_P(a_lock_file, is_writable_for_the_group_that_may_write_the_directory_for_any_umask) {
    let_directory_be(0775);
    EXPECT_EQ(mode_after(), 0660U);
}

TEST_P(a_lock_file, has_the_group_of_a_setgid_directory) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may give a directory any group";
    ASSERT_EQ(::chown(directory.path().c_str(), 0, 12345), 0);
    let_directory_be(02770);
    const auto mutex = opened().value();
    EXPECT_EQ(status().st_gid, 12345U);
    EXPECT_EQ(status().st_mode & 0060, 0060U);
}

TEST_P(a_lock_file, has_the_group_of_a_group_writable_directory_also_without_setgid) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may give a directory any group";
    ASSERT_EQ(::chown(directory.path().c_str(), 0, 12345), 0);
    let_directory_be(0770);
    const auto mutex = opened().value();
    EXPECT_EQ(status().st_gid, 12345U);
}

TEST_P(a_lock_file, is_writable_for_all_where_all_may_write) {
    let_directory_be(0777);
    EXPECT_EQ(mode_after(), 0666U);
}

TEST_P(a_lock_file, is_private_in_a_sticky_directory) {
    let_directory_be(01777);
    EXPECT_EQ(mode_after(), 0600U);
}

TEST_P(a_lock_file, has_exactly_the_requested_mode) {
    let_directory_be(01777);
    EXPECT_EQ(mode_after({.mode = 0666, .group = {}}), 0666U);
}

TEST_P(a_lock_file, is_writable_for_the_requested_group) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file any group";
    const auto mutex = opened({.mode = {}, .group = 12345}).value();
    EXPECT_EQ(status().st_gid, 12345U);
    EXPECT_EQ(status().st_mode & 0666, 0660U);
}

TEST_P(a_lock_file, that_another_user_owns_is_refused_in_a_sticky_directory_unless_shared) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file to another user";
    let_directory_be(01777);
    {
        const auto mutex = opened({.mode = 0666, .group = {}}).value();
        ASSERT_EQ(::chown(directory.path_of("locks").c_str(), 12345, 12345), 0);
        EXPECT_EQ(refusal(), std::errc::operation_not_permitted);
        EXPECT_EQ(refusal({.mode = 0666, .group = {}}), std::errc());
    }
}

INSTANTIATE_TEST_SUITE_P(, a_lock_file,
                         testing::Values(algorithm::memory_map, algorithm::atomic_append,
                                         algorithm::byte_ranges, algorithm::lock_files),
                         [](const auto& one) { return std::string(name_of(one.param)); });

class a_planted_file : public a_lock_file {
protected:
    void SetUp() override { directory.write("target", ""); }
};

TEST_P(a_planted_file, is_not_reached_by_a_symbolic_link_where_others_can_write) {
    std::filesystem::create_symlink("target", directory.path_of("locks"));
    for (const mode_t mode : {01777U, 0775U}) {
        let_directory_be(mode);
        EXPECT_EQ(refusal(), std::errc::too_many_symbolic_link_levels);
    }
    EXPECT_EQ(directory.content("target"), "");
    let_directory_be(0755);
    EXPECT_EQ(refusal(), std::errc());
}

TEST_P(a_planted_file, is_not_created_through_a_link_without_a_target) {
    std::filesystem::create_symlink("none", directory.path_of("locks"));
    for (const mode_t mode : {01777U, 0755U}) {
        let_directory_be(mode);
        EXPECT_EQ(refusal(), std::errc::too_many_symbolic_link_levels);
    }
    EXPECT_FALSE(directory.exists("none"));
}

TEST_P(a_planted_file, is_not_another_name_of_a_file_where_others_can_write) {
    std::filesystem::create_hard_link(directory.path_of("target"), directory.path_of("locks"));
    let_directory_be(01777);
    EXPECT_EQ(refusal(), std::errc::too_many_links);
    EXPECT_EQ(directory.content("target"), "");
}

TEST_P(a_planted_file, is_refused_if_it_is_a_fifo) {
    ASSERT_EQ(::mkfifo(directory.path_of("locks").c_str(), 0600), 0);
    EXPECT_EQ(refusal(), std::errc::no_such_device_or_address);
}

INSTANTIATE_TEST_SUITE_P(, a_planted_file,
                         testing::Values(algorithm::memory_map, algorithm::atomic_append,
                                         algorithm::byte_ranges),
                         [](const auto& one) { return std::string(name_of(one.param)); });

}  // namespace
}  // namespace sluice::fsmutex
