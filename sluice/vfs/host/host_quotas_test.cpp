#include "sluice/vfs/host/host_quotas.hpp"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sluice/vfs/host/host_volume.hpp"

// The kernel's quotas, on an ext4 file system in an image: needs root, mkfs.ext4 and loop devices.

namespace sluice::vfs {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint32_t user = 54321;

class host_quotas_on_ext4 : public testing::Test {
protected:
    void SetUp() override {
        // The virtual machine of tests/interop/kernel_quotas.py has such a file system.
        if (const char* const given = std::getenv("SLUICE_TEST_QUOTA_DIRECTORY"))
            root_ = given;
        else
            mount_image();
        if (IsSkipped() or HasFatalFailure()) return;
        handle_.emplace(io::path_handle::open(root_.c_str(), io::confinement::beneath).value());
        quotas_.emplace(*handle_);
        if (not quotas_->state().is_enforced) GTEST_SKIP() << "the kernel does not enforce quotas of ext4";
    }
    void TearDown() override {
        quotas_.reset();
        handle_.reset();
        if (is_mounted_) ::umount2(root_.c_str(), MNT_DETACH);
        if (not place_.empty()) std::filesystem::remove_all(place_);
    }

    void mount_image() {
        if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount a file system";
        std::string scratch = (std::filesystem::temp_directory_path() / "sluice-quotas-XXXXXX").string();
        ASSERT_NE(::mkdtemp(scratch.data()), nullptr);
        place_ = scratch;
        root_ = place_ / "mount";
        std::filesystem::create_directory(root_);
        const std::string image = (place_ / "image").string();
        std::ofstream(image).close();
        std::filesystem::resize_file(image, 32 * mebibyte);
        if (not run("mkfs.ext4 -q -O quota " + image))
            GTEST_SKIP() << "needs mkfs.ext4 (Debian package e2fsprogs)";
        if (not run("mount -o loop,usrquota " + image + " " + root_.string()))
            GTEST_SKIP() << "needs loop devices, and quotas in the kernel";
        is_mounted_ = true;
    }

    [[nodiscard]] static bool run(const std::string& command) {
        return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
    }

    std::filesystem::path place_;  // directory of the image, if there is one
    std::filesystem::path root_;
    bool is_mounted_ = false;
    std::optional<io::path_handle> handle_;
    std::optional<host_quotas> quotas_;
};

TEST_F(host_quotas_on_ext4, count_and_limit_what_a_user_stores) {
    EXPECT_EQ(quotas_->of(user).value(), user_quota{.user = user});
    ASSERT_TRUE(quotas_->set({.user = user, .soft_limit_bytes = mebibyte, .hard_limit_bytes = 2 * mebibyte}));
    const std::filesystem::path file = root_ / "file";
    std::ofstream(file) << std::string(100'000, 'a') << std::flush;
    ASSERT_EQ(::chown(file.c_str(), user, user), 0);
    const user_quota its = quotas_->of(user).value();
    EXPECT_GE(its.used_bytes, 100'000U);
    EXPECT_EQ(its.soft_limit_bytes, mebibyte);
    EXPECT_EQ(its.hard_limit_bytes, 2 * mebibyte);
    ASSERT_TRUE(quotas_->set({.user = user}));
    EXPECT_EQ(quotas_->of(user)->hard_limit_bytes, std::nullopt);
}

TEST_F(host_quotas_on_ext4, round_limits_up_to_whole_blocks) {
    ASSERT_TRUE(quotas_->set({.user = user, .soft_limit_bytes = 0, .hard_limit_bytes = 1025}));
    EXPECT_EQ(quotas_->of(user)->soft_limit_bytes, 1024U) << "the kernel has no limit of zero";
    EXPECT_EQ(quotas_->of(user)->hard_limit_bytes, 2048U);
}

TEST_F(host_quotas_on_ext4, are_listed_by_number) {
    ASSERT_TRUE(quotas_->set({.user = user, .hard_limit_bytes = mebibyte}));
    ASSERT_TRUE(quotas_->set({.user = user + 7, .hard_limit_bytes = mebibyte}));
    EXPECT_EQ(quotas_->next(1).value()->user, user);
    EXPECT_EQ(quotas_->next(user + 1).value()->user, user + 7);
    EXPECT_EQ(quotas_->next(user + 8).value(), std::nullopt);
}

TEST(host_quotas, do_not_exist_on_proc) {
    const auto root = io::path_handle::open("/proc", io::confinement::beneath).value();
    host_quotas quotas(root);
    EXPECT_FALSE(quotas.state().is_counted);
    EXPECT_EQ(quotas.of(::geteuid()).error().code(), ENOTSUP);
}

}  // namespace
}  // namespace sluice::vfs
