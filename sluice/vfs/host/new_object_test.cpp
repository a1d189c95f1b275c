#include "sluice/vfs/host/new_object.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/host/host_volume.hpp"
#include "sluice/vfs/impersonated_volume.hpp"
#include "sluice/vfs/node_attached.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;

// A default ACL: version 2, then entries of tag, rights and ID.
template <class... Entry>
std::vector<std::uint8_t> acl_of(const Entry&... entries) {
    std::vector<std::uint8_t> bytes{2, 0, 0, 0};
    const auto add = [&](const std::array<unsigned, 3>& entry) {
        for (const unsigned half : {entry[0], entry[1]}) {
            bytes.push_back(static_cast<std::uint8_t>(half & 0xffU));
            bytes.push_back(static_cast<std::uint8_t>(half >> 8U));
        }
        for (unsigned shift = 0; shift != 32; shift += 8)
            bytes.push_back(static_cast<std::uint8_t>(entry[2] >> shift));
    };
    (add(entries), ...);
    return bytes;
}
using entry = std::array<unsigned, 3>;
constexpr unsigned no_id = 0xffff'ffffU;

class new_object_test : public testing::Test {
protected:
    void TearDown() override { ::umask(before_); }

    void open(const creation_rules& rules) {
        opened_.reset();
        opened_ = host_volume::open(*multiplexer_, path_of(""), {.created = rules}).value();
    }
    [[nodiscard]] std::string path_of(const std::string& name) const {
        return scratch_.path_of("share/" + name);
    }
    [[nodiscard]] int make(const std::string& path, node_kind kind = node_kind::file) {
        const auto made = opened_->create(path, {.kind = kind});
        return made ? 0 : made.error().code();
    }
    [[nodiscard]] struct stat status_of(const std::string& name) const {
        struct stat status{};
        EXPECT_EQ(::lstat(path_of(name).c_str(), &status), 0) << name;
        return status;
    }
    [[nodiscard]] unsigned mode_of(const std::string& name) const { return status_of(name).st_mode & 07777U; }
    // False: the file system has no ACLs.
    [[nodiscard]] bool set_default_acl(const std::string& name, const std::vector<std::uint8_t>& acl) const {
        return ::setxattr(path_of(name).c_str(), "system.posix_acl_default", acl.data(), acl.size(), 0) == 0;
    }

    const mode_t before_ = ::umask(022);
    io::test_directory scratch_{"/dev/shm"};
    bool made_ = fs::create_directory(scratch_.path_of("share"));
    std::unique_ptr<io::io_multiplexer> multiplexer_ = io::make_epoll_multiplexer().value();
    std::unique_ptr<host_volume> opened_;
};

TEST_F(new_object_test, modes_are_exact_whatever_the_umask_is) {
    for (const mode_t mask : {0U, 022U, 077U, 0777U}) {
        ::umask(mask);
        open({.file_bits = 0660, .directory_bits = 0770});
        ASSERT_EQ(make("f"), 0);
        ASSERT_EQ(make("d", node_kind::directory), 0);
        EXPECT_EQ(mode_of("f"), 0660U);
        EXPECT_EQ(mode_of("d"), 0770U);
        ::umask(022);
        fs::remove(path_of("f"));
        fs::remove(path_of("d"));
    }
}

TEST_F(new_object_test, without_rules_the_umask_decides) {
    ::umask(027);
    open({});
    ASSERT_EQ(make("f"), 0);
    EXPECT_EQ(mode_of("f"), 0640U);
    EXPECT_EQ(umask_of_process(), 027U);
}

TEST_F(new_object_test, the_umask_decides_for_a_new_owner_without_a_mode) {
    ::umask(027);
    open({.owner = ::geteuid(), .group = ::getegid()});
    ASSERT_EQ(make("f"), 0);
    ASSERT_EQ(make("d", node_kind::directory), 0);
    EXPECT_EQ(mode_of("f"), 0640U);
    EXPECT_EQ(mode_of("d"), 0750U);
}

TEST_F(new_object_test, directories_may_have_the_sticky_bit_and_keep_the_inherited_group) {
    fs::create_directory(path_of("group"));
    ASSERT_EQ(::chmod(path_of("group").c_str(), 02755), 0);
    open({.file_bits = 0640, .directory_bits = 01770});
    ASSERT_EQ(make("group/d", node_kind::directory), 0);
    ASSERT_EQ(make("group/f"), 0);
    EXPECT_EQ(mode_of("group/d"), 03770U);
    EXPECT_EQ(mode_of("group/f"), 0640U);
    EXPECT_EQ(status_of("group/f").st_gid, status_of("group").st_gid);
}

TEST_F(new_object_test, a_group_of_the_process_needs_no_privilege) {
    open({.group = ::getegid(), .directory_bits = 02770});
    ASSERT_EQ(make("d", node_kind::directory), 0);
    EXPECT_EQ(status_of("d").st_gid, ::getegid());
    EXPECT_EQ(mode_of("d"), 02770U);
}

TEST_F(new_object_test, a_default_acl_restricts_the_mode_and_stays) {
    fs::create_directory(path_of("d"));
    const auto acl = acl_of(entry{1, 7, no_id}, entry{2, 6, 1234}, entry{4, 5, no_id}, entry{16, 6, no_id},
                            entry{32, 4, no_id});
    if (not set_default_acl("d", acl)) GTEST_SKIP() << "the file system has no ACLs";
    for (const bool changes_owner : {false, true}) {
        const std::string name = changes_owner ? "d/owned" : "d/plain";
        creation_rules rules{.file_bits = 0664, .directory_bits = 0770};
        if (changes_owner) rules.group = ::getegid();
        open(rules);
        ASSERT_EQ(make(name), 0);
        ASSERT_EQ(make(name + "_d", node_kind::directory), 0);
        // The group's bits are the mask of the ACL: 6 & 6. The entry of the named user remains.
        EXPECT_EQ(mode_of(name), 0664U) << name;
        EXPECT_EQ(mode_of(name + "_d"), 0760U) << name;
        std::array<std::uint8_t, 256> value{};
        const ssize_t bytes =
            ::getxattr(path_of(name).c_str(), "system.posix_acl_access", value.data(), value.size());
        const auto expected = acl_of(entry{1, 6, no_id}, entry{2, 6, 1234}, entry{4, 5, no_id},
                                     entry{16, 6, no_id}, entry{32, 4, no_id});
        ASSERT_EQ(bytes, static_cast<ssize_t>(expected.size())) << name;
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), value.begin())) << name;
        EXPECT_GT(::getxattr(path_of(name + "_d").c_str(), "system.posix_acl_default", nullptr, 0), 0);
    }
}

TEST_F(new_object_test, an_owner_that_cannot_be_set_leaves_no_file) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may give files away";
    open({.owner = 0});
    EXPECT_EQ(make("f"), EPERM);
    EXPECT_EQ(make("d", node_kind::directory), EPERM);
    EXPECT_TRUE(fs::is_empty(path_of("")));
}

TEST_F(new_object_test, a_link_stays_if_its_file_cannot_get_its_owner) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may give files away";
    fs::create_symlink("target", path_of("link"));
    open({.owner = 0});
    const auto link = opened_->find("link", follow_links::no);
    ASSERT_TRUE(link);
    EXPECT_EQ((*link)->attached()->become_link("").error().code(), EPERM);
    EXPECT_EQ(fs::read_symlink(path_of("link")), "target");
    EXPECT_EQ(std::distance(fs::directory_iterator(path_of("")), {}), 1);
}

TEST_F(new_object_test, a_link_becomes_a_file_with_the_mode_of_the_rules) {
    fs::create_symlink("target", path_of("link"));
    open({.file_bits = 0640});
    const auto link = opened_->find("link", follow_links::no);
    ASSERT_TRUE(link);
    ASSERT_TRUE((*link)->attached()->become_link(""));
    EXPECT_TRUE(S_ISREG(status_of("link").st_mode));
    EXPECT_EQ(mode_of("link"), 0640U);
    EXPECT_EQ(std::distance(fs::directory_iterator(path_of("")), {}), 1);
}

// Between mkdir(2) and open(2), another program can put another directory in the place of the new
// one.
class replaced_directory : public new_object_test {
protected:
    // Returns the error of completing the directory `d`, as if it were new, with the mode 0777.
    [[nodiscard]] int complete(bool& may_be) const {
        const io::path_handle base;
        const auto parent = io::path_handle::open(base, path_of(""));
        const auto made = io::path_handle::open(base, path_of("d"));
        auto status = io::status_of(*made, node_fields);
        const creation_rules rules{.directory_bits = 0777};
        const new_object begun(rules, *parent, {.kind = node_kind::directory, .asked_bits = {}});
        may_be = begun.may_be(*made, *status);
        const auto done = begun.complete(*made, *status);
        return done ? 0 : done.error().code();
    }
};

TEST_F(replaced_directory, keeps_its_mode_if_it_is_not_empty) {
    bool may_be = false;
    fs::create_directory(path_of("d"));
    ASSERT_EQ(::chmod(path_of("d").c_str(), 0700), 0);
    EXPECT_EQ(complete(may_be), 0) << "as a new one";
    EXPECT_TRUE(may_be);
    EXPECT_EQ(mode_of("d"), 0777U);
    ASSERT_EQ(::chmod(path_of("d").c_str(), 0700), 0);
    fs::create_symlink("x", path_of("d/f"));
    EXPECT_EQ(complete(may_be), EACCES);
    EXPECT_FALSE(may_be);
    EXPECT_EQ(mode_of("d"), 0700U);
}

TEST_F(replaced_directory, keeps_its_mode_if_it_has_more_rights_than_the_new_one) {
    bool may_be = true;
    fs::create_directory(path_of("d"));
    ASSERT_EQ(::chmod(path_of("d").c_str(), 01777), 0);
    EXPECT_EQ(complete(may_be), EACCES);
    EXPECT_FALSE(may_be);
    EXPECT_EQ(mode_of("d"), 01777U);
}

TEST_F(replaced_directory, keeps_its_mode_if_another_user_owns_it) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
    bool may_be = true;
    fs::create_directory(path_of("d"));
    ASSERT_EQ(::chmod(path_of("d").c_str(), 0700), 0);
    ASSERT_EQ(::chown(path_of("d").c_str(), 12345, 12345), 0);
    EXPECT_EQ(complete(may_be), EACCES);
    EXPECT_FALSE(may_be);
    EXPECT_EQ(mode_of("d"), 0700U);
}

class new_object_as_root : public new_object_test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
        ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
    }
};

TEST_F(new_object_as_root, the_owner_and_group_are_those_of_the_rules) {
    open({.owner = 12345, .group = 23456, .file_bits = 0640, .directory_bits = 02750});
    ASSERT_EQ(make("f"), 0);
    ASSERT_EQ(make("d", node_kind::directory), 0);
    EXPECT_EQ(status_of("f").st_uid, 12345U);
    EXPECT_EQ(status_of("f").st_gid, 23456U);
    EXPECT_EQ(mode_of("f"), 0640U);
    EXPECT_EQ(status_of("d").st_gid, 23456U);
    EXPECT_EQ(mode_of("d"), 02750U);
}

TEST_F(new_object_as_root, the_owner_of_the_directory_is_inherited) {
    fs::create_directory(path_of("d"));
    ASSERT_EQ(::chown(path_of("d").c_str(), 12345, 23456), 0);
    open({.inherits_owner = true});
    ASSERT_EQ(make("d/f"), 0);
    ASSERT_EQ(make("d/e", node_kind::directory), 0);
    EXPECT_EQ(status_of("d/f").st_uid, 12345U);
    EXPECT_EQ(status_of("d/f").st_gid, ::getegid()) << "the group is that of the creator";
    EXPECT_EQ(status_of("d/e").st_uid, 12345U);
    EXPECT_EQ(mode_of("d/f"), 0644U);
}

TEST_F(new_object_as_root, a_user_gives_away_what_the_user_may_create) {
    fs::create_directory(path_of("inbox"));
    ASSERT_EQ(::chown(path_of("inbox").c_str(), 12345, 0), 0);
    ASSERT_EQ(::chmod(path_of("inbox").c_str(), 01777), 0);
    open({.inherits_owner = true, .file_bits = 0600});
    auto made = impersonated_volume::create(*opened_, {.user_id = 54321, .group_id = 54321});
    ASSERT_TRUE(made);
    const auto file = (*made)->create("inbox/f", {.dos = dos_attributes::hidden});
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(status_of("inbox/f").st_uid, 12345U);
    EXPECT_EQ(mode_of("inbox/f"), 0600U);
    EXPECT_EQ((*made)->create("f", {}).error().code(), EACCES) << "the user may not create names here";
    EXPECT_FALSE(fs::exists(path_of("f")));
}

TEST(mode_under_acl, refuses_bytes_without_the_form_of_an_acl) {
    const auto mode = [](const std::vector<std::uint8_t>& acl) {
        return mode_under_acl(bytes_view(std::as_bytes(std::span(acl))), 0777);
    };
    EXPECT_EQ(mode({}), std::nullopt);
    EXPECT_EQ(mode({1, 0, 0, 0}), std::nullopt);
    EXPECT_EQ(mode(acl_of(entry{1, 7, no_id}, entry{4, 5, no_id})), std::nullopt) << "no entry for others";
    EXPECT_EQ(mode(acl_of(entry{1, 7, no_id}, entry{4, 5, no_id}, entry{32, 0, no_id})), 0750U);
    EXPECT_EQ(mode(acl_of(entry{1, 6, no_id}, entry{4, 7, no_id}, entry{16, 1, no_id}, entry{32, 4, no_id})),
              0614U);
}

}  // namespace
}  // namespace sluice::vfs
