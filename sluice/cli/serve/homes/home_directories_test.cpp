#include "sluice/cli/serve/homes/home_directories.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sluice/cli/serve/homes/home_shares.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class homes : public testing::Test {
protected:
    homes() {
        std::string pattern = (fs::temp_directory_path() / "sluice-homes-XXXXXX").string();
        scratch_ = ::mkdtemp(pattern.data());
        options_.homes = (scratch_ / "homes").string();
        fs::create_directory(options_.homes);
        fs::permissions(options_.homes, fs::perms(0755));
    }
    ~homes() override {
        std::error_code unknown;
        fs::remove_all(scratch_, unknown);
    }
    homes(const homes&) = delete;
    homes& operator=(const homes&) = delete;

    [[nodiscard]] fs::path path(const char* name) const { return fs::path(options_.homes) / name; }
    [[nodiscard]] auto open(const std::string& user, const account_lookup& accounts = {}) const {
        return home_directories::open(options_, accounts).value().open_home(user);
    }
    [[nodiscard]] std::string why_not(const std::string& user, const account_lookup& accounts = {}) const {
        const auto opened = open(user, accounts);
        return opened ? "" : opened.error();
    }
    [[nodiscard]] std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto& each : fs::directory_iterator(options_.homes))
            all.push_back(each.path().filename().string());
        return all;
    }

    fs::path scratch_;
    serve_options options_;
};

TEST_F(homes, create_a_missing_directory_for_its_owner_alone) {
    const auto opened = open("alice");
    ASSERT_TRUE(opened) << opened.error();
    struct stat status{};
    ASSERT_EQ(::stat(path("alice").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700U);
    EXPECT_EQ(status.st_uid, ::geteuid());
    EXPECT_EQ(root_of(*opened)->inode, status.st_ino);
    EXPECT_EQ(opened->confined(), io::confinement::beneath_one_mount);
    EXPECT_THAT(names(), ElementsAre("alice"));
}

TEST_F(homes, keep_the_mode_of_an_existing_directory) {
    fs::create_directory(path("alice"));
    fs::permissions(path("alice"), fs::perms(0750));
    ASSERT_TRUE(open("alice"));
    EXPECT_EQ(fs::status(path("alice")).permissions(), fs::perms(0750));
}

TEST_F(homes, refuse_a_symbolic_link) {
    fs::create_directory(scratch_ / "secret");
    fs::create_directory_symlink(scratch_ / "secret", path("alice"));
    EXPECT_THAT(why_not("alice"), HasSubstr("/homes/alice: a symbolic link; move the directory there"));
    fs::create_directory(path("carol"));
    fs::create_directory_symlink("carol", path("bob"));
    EXPECT_THAT(why_not("bob"), HasSubstr("a symbolic link"));
}

TEST_F(homes, refuse_a_file) {
    std::ofstream(path("alice")) << "content";
    EXPECT_THAT(why_not("alice"), HasSubstr("Not a directory"));
}

TEST_F(homes, do_not_lead_out_of_their_directory) {
    fs::create_directory(scratch_ / "secret");
    for (const char* const user : {"..", "../secret", "/etc", "a/../../secret"})
        EXPECT_NE(why_not(user), "") << user;
}

TEST_F(homes, refuse_a_directory_whose_name_differs_in_case) {
    fs::create_directory(path("Alice"));
    EXPECT_THAT(why_not("alice"), HasSubstr("/homes/Alice exists; rename the directory or the user"));
    EXPECT_THAT(names(), ElementsAre("Alice"));
}

TEST_F(homes, are_not_served_from_a_directory_that_other_accounts_can_change) {
    fs::permissions(options_.homes, fs::perms(01777));
    const auto opened = home_directories::open(options_, {});
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error(), HasSubstr("use chmod go-w"));
    fs::permissions(options_.homes, fs::perms(0775));
    EXPECT_THAT(home_directories::open(options_, {}).error(), HasSubstr("use chmod go-w"));
    options_.homes = (scratch_ / "none").string();
    EXPECT_THAT(home_directories::open(options_, {}).error(), HasSubstr("No such file or directory"));
}

TEST_F(homes, are_not_served_from_a_directory_of_another_account) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
    ASSERT_EQ(::chown(options_.homes.c_str(), 12'345, 12'345), 0);
    EXPECT_THAT(home_directories::open(options_, {}).error(), HasSubstr("it belongs to the account 12345"));
}

TEST_F(homes, are_not_created_by_a_read_only_server) {
    options_.read_only = true;
    EXPECT_THAT(why_not("alice"), HasSubstr("the server is read-only; create it"));
    fs::create_directory(path("bob"));
    EXPECT_EQ(why_not("bob"), "");
}

TEST_F(homes, belong_to_the_account_of_the_user) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
    const auto accounts = [](const std::string& user) -> std::optional<vfs::unix_account> {
        if (user != "alice") return std::nullopt;
        return vfs::unix_account{.user_id = 12'345, .group_id = 54'321};
    };
    ASSERT_EQ(why_not("alice", accounts), "");
    struct stat status{};
    ASSERT_EQ(::stat(path("alice").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700U);
    EXPECT_EQ(status.st_uid, 12'345U);
    EXPECT_EQ(status.st_gid, 54'321U);
    EXPECT_THAT(why_not("bob", accounts), HasSubstr("no account of this name"));
    EXPECT_THAT(names(), ElementsAre("alice"));
}

TEST_F(homes, are_created_in_spite_of_the_rest_of_an_earlier_attempt) {
    fs::create_directory(path(".new-alice"));
    EXPECT_EQ(why_not("alice"), "");
    EXPECT_THAT(names(), ElementsAre("alice"));
}

TEST_F(homes, that_cannot_be_created_leave_nothing) {
    if (::geteuid() == 0) GTEST_SKIP() << "root can create directories everywhere";
    fs::permissions(options_.homes, fs::perms(0555));
    EXPECT_THAT(why_not("alice"), HasSubstr("cannot be created: mkdir: Permission denied"));
    EXPECT_TRUE(names().empty());
}

TEST_F(homes, without_a_usable_directory_have_no_root_and_no_share) {
    fs::create_directory_symlink(scratch_, path("bob"));
    ASSERT_TRUE(add_home_shares(options_, {"alice", "bob"}));
    const share_roots roots = find_home_roots(options_, {});
    EXPECT_TRUE(roots.at(path("alice").string())->is_directory);
    ASSERT_FALSE(roots.at(path("bob").string()));
    EXPECT_THAT(roots.at(path("bob").string()).error(), HasSubstr("a symbolic link"));
    ASSERT_TRUE(prepare_homes(options_, {}));
    ASSERT_EQ(options_.shares.size(), 1U);
    EXPECT_EQ(options_.shares.front().name, "alice");
    ASSERT_EQ(options_.without_homes.size(), 1U);
    EXPECT_EQ(options_.without_homes.front().user, "bob");
}

}  // namespace
}  // namespace sluice::cli
