#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "sluice/vfs/error_code_testing.hpp"
#include "sluice/vfs/host/recycle_bin.hpp"
#include "sluice/vfs/host/recycle_bin_testing.hpp"
#include "sluice/vfs/impersonated_volume.hpp"

// The recycle bin of users with accounts of their own.

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

class recycle_bin_as_root : public recycle_bin_test {
protected:
    void SetUp() override {
        if (::geteuid() != 0) GTEST_SKIP() << "only root may act as other accounts";
        ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
        open();
        user_ = impersonated_volume::create(*opened_, {.user_id = 54321, .group_id = 54321}).value();
    }
    void put_for(const std::string& name, uid_t owner) const {
        put(name);
        ASSERT_EQ(::chown(path_of(name).c_str(), owner, owner), 0);
    }
    [[nodiscard]] int recycle_as_user(const std::string& path) {
        return code(user_->find(path, follow_links::no).value()->names()->recycle());
    }
    std::unique_ptr<impersonated_volume> user_;
};

TEST_F(recycle_bin_as_root, a_user_deletes_only_what_the_user_may_remove) {
    fs::create_directory(path_of("closed"));
    fs::create_directory(path_of("open"));
    fs::create_directory(path_of("sticky"));
    ASSERT_EQ(::chmod(path_of("open").c_str(), 0777), 0);
    ASSERT_EQ(::chmod(path_of("sticky").c_str(), 01777), 0);
    put_for("closed/f", 54321);
    put_for("open/f", 12345);
    put_for("sticky/f", 12345);
    put_for("sticky/own", 54321);
    EXPECT_EQ(recycle_as_user("closed/f"), EACCES);
    EXPECT_EQ(recycle_as_user("sticky/f"), EPERM);
    EXPECT_EQ(recycle_as_user("open/f"), 0);
    EXPECT_EQ(recycle_as_user("sticky/own"), 0);
    EXPECT_TRUE(fs::exists(path_of("closed/f")));
    EXPECT_TRUE(fs::exists(path_of("sticky/f")));
    // Each in the bin of its owner.
    EXPECT_EQ(content(".recycle/12345/open/f"), "content");
    EXPECT_EQ(code(user_->find(".recycle/12345/open/f", follow_links::no)), EACCES);
    EXPECT_EQ(code(user_->find(".recycle/54321/sticky/own", follow_links::no)), 0);
}

TEST_F(recycle_bin_as_root, a_directory_of_the_bin_belongs_to_the_owner_of_its_files) {
    fs::create_directory(path_of("d"));
    ASSERT_EQ(::chmod(path_of("d").c_str(), 0777), 0);
    put_for("d/f", 54321);
    ASSERT_EQ(recycle_as_user("d/f"), 0);
    for (const char* const name : {".recycle/54321", ".recycle/54321/d"}) {
        struct stat status{};
        ASSERT_EQ(::stat(path_of(name).c_str(), &status), 0);
        EXPECT_EQ(status.st_uid, 54321U) << name;
        EXPECT_EQ(status.st_mode & 07777U, 0700U) << name;
    }
    EXPECT_THAT(names(".recycle"), ElementsAre("54321")) << "nothing is left of its creation";
}

TEST_F(recycle_bin_as_root, a_directory_of_the_server_that_a_user_has_moved_there_is_not_given_away) {
    fs::create_directory(path_of("d"));
    ASSERT_EQ(::chmod(path_of("d").c_str(), 0777), 0);
    put_for("d/f", 54321);
    fs::create_directories(path_of(".recycle/54321/d"));
    ASSERT_EQ(::chown(path_of(".recycle/54321").c_str(), 54321, 54321), 0);
    ASSERT_EQ(::chmod(path_of(".recycle/54321").c_str(), 0700), 0);
    ASSERT_EQ(::chmod(path_of(".recycle/54321/d").c_str(), 0755), 0);
    ASSERT_EQ(recycle_as_user("d/f"), 0);
    struct stat status{};
    ASSERT_EQ(::stat(path_of(".recycle/54321/d").c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 0U);
    EXPECT_THAT(names(".recycle/54321"), UnorderedElementsAre("d", "f"));
}

TEST_F(recycle_bin_as_root, a_directory_of_the_bin_that_the_server_has_kept_is_given_to_its_owner) {
    fs::create_directory(path_of("open"));
    ASSERT_EQ(::chmod(path_of("open").c_str(), 0777), 0);
    put_for("open/f", 54321);
    fs::create_directory(path_of(".recycle/54321"));
    ASSERT_EQ(::chmod(path_of(".recycle/54321").c_str(), 0700), 0);
    ASSERT_EQ(recycle_as_user("open/f"), 0);
    struct stat status{};
    ASSERT_EQ(::stat(path_of(".recycle/54321").c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 54321U);
    EXPECT_EQ(code(user_->find(".recycle/54321/open/f", follow_links::no)), 0);
}

TEST_F(recycle_bin_as_root, an_owner_who_opens_a_directory_of_the_bin_to_others_does_not_stop_deletions) {
    fs::create_directory(path_of("open"));
    ASSERT_EQ(::chmod(path_of("open").c_str(), 0777), 0);
    put_for("open/f", 54321);
    put_for("open/g", 54321);
    ASSERT_EQ(recycle_as_user("open/f"), 0);
    for (const char* const name : {".recycle/54321", ".recycle/54321/open"})
        ASSERT_EQ(::chmod(path_of(name).c_str(), 0777), 0);
    ASSERT_EQ(recycle_as_user("open/g"), 0);
    EXPECT_EQ(content(".recycle/54321/open/g"), "content");
}

TEST_F(recycle_bin_as_root, a_user_who_may_write_to_the_root_cannot_take_the_bin) {
    ASSERT_EQ(::chmod(path_of("").c_str(), 0777), 0);
    fs::create_directory(path_of("open"));
    ASSERT_EQ(::chmod(path_of("open").c_str(), 0777), 0);
    put_for("open/f", 54321);
    const node_ptr bin = user_->find(".recycle", follow_links::no).value();
    EXPECT_EQ(code(bin->names()->rename("elsewhere", when_taken::replace)), EACCES);
    EXPECT_EQ(code(bin->names()->remove()), EACCES);
    fs::remove(path_of(".recycle"));
    EXPECT_EQ(code(user_->create(".recycle", {.kind = node_kind::directory})), EACCES);
    EXPECT_EQ(recycle_as_user("open/f"), 0);
}

TEST_F(recycle_bin_as_root, a_user_replaces_only_what_the_user_may_remove) {
    fs::create_directory(path_of("open"));
    fs::create_directory(path_of("sticky"));
    ASSERT_EQ(::chmod(path_of("open").c_str(), 0777), 0);
    ASSERT_EQ(::chmod(path_of("sticky").c_str(), 01777), 0);
    put_for("open/f", 12345);
    put_for("open/new", 54321);
    put_for("sticky/f", 12345);
    const auto rename_to = [&](const std::string& to) {
        const node_ptr renamed = user_->find("open/new", follow_links::no).value();
        return code(renamed->names()->rename(to, when_taken::replace));
    };
    EXPECT_EQ(rename_to("sticky/f"), EPERM);
    EXPECT_FALSE(fs::exists(path_of(".recycle/12345/sticky/f")));
    EXPECT_EQ(rename_to("open/f"), 0);
    EXPECT_TRUE(fs::exists(path_of(".recycle/12345/open/f")));
    EXPECT_EQ(fs::hard_link_count(path_of(".recycle/12345/open/f")), 1U);
}

}  // namespace
}  // namespace sluice::vfs
