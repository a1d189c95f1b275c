#include "sluice/cli/serve/homes/home_shares.hpp"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sluice::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

serve_options options_with(std::vector<std::string> configured = {}) {
    serve_options options;
    options.homes = "/srv/homes";
    for (std::string& each : configured) {
        options.shares.emplace_back().name = std::move(each);
        options.shares.back().path = "/srv/elsewhere";
    }
    return options;
}

std::vector<std::string> homes_in(const serve_options& options) {
    std::vector<std::string> names;
    for (const share_options& each : options.shares)
        if (each.is_home) names.push_back(each.name);
    return names;
}

std::vector<std::string> without_homes(const serve_options& options) {
    std::vector<std::string> names;
    for (const user_without_home& each : options.without_homes)
        names.push_back(each.user);
    return names;
}

TEST(home_shares, are_one_for_each_user_whom_alone_they_admit) {
    serve_options options = options_with({"team"});
    options.auditors = {"carol"};
    options.hide_unreadable = true;
    ASSERT_TRUE(add_home_shares(options, {"alice", "Bob"}));
    EXPECT_THAT(homes_in(options), ElementsAre("alice", "Bob"));
    const share_options& bob = options.shares.back();
    EXPECT_EQ(bob.path, "/srv/homes/Bob");
    EXPECT_THAT(bob.users, ElementsAre("Bob"));
    EXPECT_EQ(bob.guest, "off");
    EXPECT_THAT(bob.auditors, ElementsAre("carol"));
    EXPECT_TRUE(bob.hide_unreadable);
    EXPECT_FALSE(options.shares.front().is_home);
}

TEST(home_shares, do_not_exist_without_the_setting) {
    serve_options options;
    ASSERT_TRUE(add_home_shares(options, {"alice"}));
    EXPECT_THAT(options.shares, IsEmpty());
    EXPECT_THAT(options.without_homes, IsEmpty());
}

TEST(home_shares, have_paths_with_one_slash) {
    serve_options options = options_with();
    options.homes = "/srv/homes//";
    ASSERT_TRUE(add_home_shares(options, {"alice"}));
    EXPECT_EQ(options.shares.back().path, "/srv/homes/alice");
    options = options_with();
    options.homes = "/";
    ASSERT_TRUE(add_home_shares(options, {"alice"}));
    EXPECT_EQ(options.shares.back().path, "/alice");
}

TEST(home_shares, are_not_made_for_names_that_lead_elsewhere) {
    const std::vector<std::string> hostile{".",
                                           "..",
                                           ".hidden",
                                           "",
                                           "a/b",
                                           "../b",
                                           "a\\b",
                                           "ipc$",
                                           "IPC$",
                                           "\xff",
                                           "\xc0\xae.",
                                           "a\nb",
                                           std::string(65, 'a'),
                                           "@team",
                                           "a*b"};
    serve_options options = options_with();
    ASSERT_TRUE(add_home_shares(options, hostile));
    EXPECT_THAT(homes_in(options), IsEmpty());
    for (const std::string& each : hostile)
        EXPECT_NE(why_not_home(each), "") << each;
}

TEST(home_shares, are_made_for_unusual_names) {
    for (const std::string name : {"a..", "a b", "J\xc3\xb6rg", "x.y", "backup$", "guest", "~", "-rf", "%U"})
        EXPECT_EQ(why_not_home(name), "") << name;
}

TEST(home_shares, yield_to_shares_of_the_configuration_whatever_their_case) {
    serve_options options = options_with({"ALICE", "J\xc3\x96RG"});
    ASSERT_TRUE(add_home_shares(options, {"alice", "bob", "j\xc3\xb6rg"}));
    EXPECT_THAT(homes_in(options), ElementsAre("bob"));
    EXPECT_THAT(without_homes(options), ElementsAre("alice", "j\xc3\xb6rg"));
    EXPECT_THAT(options.without_homes.front().why, HasSubstr("rename that share"));
}

TEST(home_shares, are_not_repeated_for_a_user_that_is_named_twice) {
    serve_options options = options_with();
    ASSERT_TRUE(add_home_shares(options, {"alice", "Alice", "alice"}));
    EXPECT_THAT(homes_in(options), ElementsAre("alice"));
    EXPECT_THAT(options.without_homes, IsEmpty());
}

TEST(home_shares, of_too_many_users_are_an_error) {
    std::vector<std::string> users;
    for (std::size_t i = 0; i != home_shares_max; ++i)
        users.push_back(fmt::format("user{}", i));
    serve_options options = options_with();
    ASSERT_TRUE(add_home_shares(options, users));
    EXPECT_EQ(options.shares.size(), users.size());
    users.emplace_back("one-more");
    options = options_with();
    const auto added = add_home_shares(options, users);
    ASSERT_FALSE(added);
    EXPECT_THAT(added.error(), HasSubstr("homes: 1025 users, but at most 1024"));
    EXPECT_THAT(options.shares, IsEmpty());
}

TEST(home_shares, are_those_of_the_users_that_can_log_on) {
    smb::server::user_database users;
    ASSERT_TRUE(users.set("alice", "one"));
    ASSERT_TRUE(users.set("bob", "two"));
    serve_options options;
    EXPECT_THAT(home_users(options, users), ElementsAre("alice", "bob"));
    options.users = {"bob", "carol%secret"};
    EXPECT_THAT(home_users(options, users), ElementsAre("bob", "carol"));
    options.users = {"bob", "carol%secret", "dave"};
    EXPECT_THAT(home_users(options, users), ElementsAre("alice", "bob")) << "the server refuses the list";
}

TEST(home_shares, are_removed_for_users_without_a_directory) {
    serve_options options = options_with({"bob"});
    ASSERT_TRUE(add_home_shares(options, {"alice", "carol"}));
    remove_missing_homes(options, {{.user = "bob", .why = ""}, {.user = "carol", .why = ""}});
    EXPECT_THAT(homes_in(options), ElementsAre("alice"));
    EXPECT_EQ(options.shares.size(), 2U);
}

}  // namespace
}  // namespace sluice::cli
