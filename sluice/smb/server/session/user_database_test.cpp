#include "sluice/smb/server/session/user_database.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

namespace sluice::smb::server {
namespace {

class user_file : public testing::Test {
protected:
    user_file() {
        std::string pattern = (std::filesystem::temp_directory_path() / "sluice-users-XXXXXX").string();
        directory = mkdtemp(pattern.data());
        path = directory / "deep" / "users";
    }
    ~user_file() override { std::filesystem::remove_all(directory); }

    void write(std::string_view text, std::filesystem::perms permissions = std::filesystem::perms{0600}) {
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        std::filesystem::permissions(path, permissions);
    }
    [[nodiscard]] std::unique_ptr<user_database> loaded() const {
        auto users = user_database::load(path.string(), exclusion);
        EXPECT_TRUE(users) << users.error().message();
        return *std::move(users);
    }

    std::filesystem::path directory;
    std::filesystem::path path;
    // Stands for a mutex between processes: records the paths, and refuses while it is held.
    std::vector<std::string> excluded;
    bool is_held = false;
    struct held_edit final : users_edit {
        explicit held_edit(bool& held) noexcept : is_held(held) {}
        ~held_edit() override { is_held = false; }
        bool& is_held;
    };
    const edit_exclusion exclusion = [this](const std::string& file) -> result<std::shared_ptr<users_edit>> {
        excluded.push_back(file);
        if (std::exchange(is_held, true)) return failure({EBUSY, "edit users"});
        return std::make_shared<held_edit>(is_held);
    };
};

TEST_F(user_file, keeps_users_across_loads_and_finds_them_in_any_case) {
    write("");
    ASSERT_TRUE(loaded()->set("Alice", "pässword"));
    const auto again = loaded();
    EXPECT_THAT(again->names(), testing::ElementsAre("Alice"));
    const auto found = again->find("ALICE", "anything");
    ASSERT_TRUE(found);
    EXPECT_TRUE(
        auth::equal_in_constant_time(found->hash.view(), auth::nt_hash::of_password("pässword")->view()));
    EXPECT_FALSE(again->find("bob", ""));
}

TEST_F(user_file, that_admits_some_finds_no_other_user_even_after_a_reload) {
    write("");
    ASSERT_TRUE(loaded()->set("alice", "a"));
    ASSERT_TRUE(loaded()->set("bob", "b"));
    const auto users = loaded();
    const std::array some{user_database::admission{.name = "Alice", .password = {}},
                          user_database::admission{.name = "carol", .password = "c"}};
    ASSERT_TRUE(users->admit(some));
    ASSERT_TRUE(users->reload());
    EXPECT_TRUE(users->find("alice", ""));
    EXPECT_TRUE(users->find("carol", ""));
    EXPECT_FALSE(users->find("bob", ""));
    EXPECT_THAT(users->names(), testing::ElementsAre("alice", "bob"));
    EXPECT_THAT(users->found_names(), testing::ElementsAre("Alice", "carol"));
    ASSERT_TRUE(users->remove("alice"));
    EXPECT_THAT(users->found_names(), testing::ElementsAre("carol"));
    ASSERT_TRUE(users->admit({}));
    EXPECT_THAT(users->found_names(), testing::ElementsAre("bob"));
    EXPECT_TRUE(users->find("bob", ""));
    EXPECT_FALSE(users->find("carol", "")) << "a temporary admission has ended";
}

TEST_F(user_file, that_cannot_admit_one_keeps_the_users_admitted_before) {
    write("");
    ASSERT_TRUE(loaded()->set("alice", "a"));
    const auto users = loaded();
    const std::array wrong{user_database::admission{.name = "carol", .password = "c"},
                           user_database::admission{.name = "no:name", .password = "d"}};
    EXPECT_EQ(users->admit(wrong).error(), std::errc::invalid_argument);
    EXPECT_TRUE(users->find("alice", ""));
    EXPECT_FALSE(users->find("carol", ""));
}

TEST_F(user_file, is_for_its_owner_alone) {
    write("");
    ASSERT_TRUE(loaded()->set("a", "b"));
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms{0600});
    write("", std::filesystem::perms{0644});
    const auto refused = user_database::load(path.string(), exclusion);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("chmod 600"));
}

TEST_F(user_file, is_refused_and_kept_if_it_has_a_later_version) {
    constexpr std::string_view later = "# sluice-users version 2\nalice:unknown\n";
    write(later);
    const auto users = user_database::open(path.string(), exclusion);
    ASSERT_FALSE(users);
    EXPECT_EQ(users.error(), std::errc::not_supported);
    EXPECT_THAT(users.error().message(), testing::HasSubstr("version 2"));
    std::string kept;
    std::getline(std::ifstream(path), kept, '\0');
    EXPECT_EQ(kept, later);
    write("# sluice-users version 1\n");
    EXPECT_TRUE(user_database::open(path.string(), exclusion));
}

TEST_F(user_file, with_a_line_that_is_none_is_refused_and_kept) {
    write("alice:00\n");
    EXPECT_EQ(user_database::load(path.string(), exclusion).error(), std::errc::invalid_argument);
    write("# note\n\nalice:0123456789abcdef0123456789abcdef\n");
    const auto users = loaded();
    write("rubbish");
    EXPECT_FALSE(users->reload());
    EXPECT_TRUE(users->contains("alice")) << "the known users stay";
    EXPECT_FALSE(users->set("bob", "x")) << "an edit must not destroy what it cannot read";
}

TEST_F(user_file, may_be_missing_on_a_reload_unless_it_had_users) {
    const auto users = user_database::open(path.string(), exclusion);
    ASSERT_TRUE(users);
    EXPECT_TRUE((*users)->reload());
    ASSERT_TRUE((*users)->set("alice", "a"));
    std::filesystem::remove(path);
    EXPECT_EQ((*users)->reload().error(), std::errc::no_such_file_or_directory);
    EXPECT_TRUE((*users)->contains("alice")) << "the known users stay";
}

TEST_F(user_file, forgets_who_is_removed) {
    write("");
    const auto users = loaded();
    ASSERT_TRUE(users->set("alice", "1"));
    ASSERT_TRUE(users->set("bob", "2"));
    ASSERT_TRUE(users->remove("ALICE"));
    EXPECT_THAT(loaded()->names(), testing::ElementsAre("bob"));
    EXPECT_EQ(users->remove("alice").error(), std::errc::no_such_file_or_directory);
}

TEST_F(user_file, takes_edits_of_two_programs_without_losing_one) {
    write("");
    const auto first = loaded();
    const auto second = loaded();
    ASSERT_TRUE(first->set("a", "1"));
    ASSERT_TRUE(second->set("b", "2"));
    EXPECT_THAT(loaded()->names(), testing::ElementsAre("a", "b"));
}

TEST_F(user_file, is_edited_by_one_program_at_a_time_and_not_at_all_while_another_does) {
    write("");
    const auto users = loaded();
    EXPECT_THAT(excluded, testing::IsEmpty()) << "reading excludes no other process";
    ASSERT_TRUE(users->set("alice", "1"));
    EXPECT_THAT(excluded, testing::ElementsAre(path.string()));
    EXPECT_FALSE(is_held) << "held no longer than the edit takes";
    is_held = true;
    EXPECT_EQ(users->set("bob", "2").error(), std::errc::device_or_resource_busy);
    EXPECT_EQ(users->remove("alice").error(), std::errc::device_or_resource_busy);
    EXPECT_THAT(loaded()->names(), testing::ElementsAre("alice"));
}

// Users with the hash of the password "1".
std::vector<user_database::stored_user> stored_users(std::initializer_list<const char*> names) {
    std::vector<user_database::stored_user> users;
    for (const char* const name : names)
        users.push_back({.name = name, .hash = *auth::nt_hash::of_password("1")});
    return users;
}

TEST_F(user_file, adds_stored_users_in_one_edit_and_keeps_those_that_exist) {
    write("");
    const auto users = loaded();
    ASSERT_TRUE(users->set("Alice", "own"));
    excluded.clear();
    const auto done = users->add_stored(stored_users({"alice", "bob"}), false);
    ASSERT_TRUE(done);
    EXPECT_THAT(done->added, testing::ElementsAre("bob"));
    EXPECT_THAT(done->kept, testing::ElementsAre("alice"));
    EXPECT_THAT(excluded, testing::SizeIs(1));
    const auto hash = [](const char* password) { return *auth::nt_hash::of_password(password); };
    const auto has = [&](std::string_view name, const char* password) {
        return auth::equal_in_constant_time(loaded()->find(name, "")->hash.view(), hash(password).view());
    };
    EXPECT_TRUE(has("alice", "own") and has("bob", "1"));
    const auto replaced = users->add_stored(stored_users({"alice"}), true);
    ASSERT_TRUE(replaced);
    EXPECT_THAT(replaced->replaced, testing::ElementsAre("alice"));
    EXPECT_TRUE(has("alice", "1"));
}

TEST_F(user_file, with_an_invalid_or_excessive_import_stays_as_it_was) {
    write("");
    const auto users = loaded();
    ASSERT_TRUE(users->set("alice", "own"));
    EXPECT_EQ(users->add_stored(stored_users({"bob", "a:b"}), false).error(), std::errc::invalid_argument);
    std::vector<user_database::stored_user> many;
    for (int i = 0; i != 20'000; ++i)
        many.push_back(
            {.name = "user-with-a-long-name-" + std::to_string(i), .hash = *auth::nt_hash::of_password("1")});
    EXPECT_EQ(users->add_stored(many, false).error(), std::errc::file_too_large);
    EXPECT_THAT(loaded()->names(), testing::ElementsAre("alice"));
}

TEST(user_name, must_be_one_that_fits_a_line_and_a_client) {
    for (const std::string_view name : {"alice", "Jürgen Müller", "a.b-c_d"})
        EXPECT_TRUE(user_database::is_valid_name(name)) << name;
    for (const std::string_view name : {"", "a:b", "a\\b", "a/b", "a\nb", "a@b"})
        EXPECT_FALSE(user_database::is_valid_name(name)) << name;
    EXPECT_FALSE(user_database::is_valid_name(std::string(65, 'x')));
}

}  // namespace
}  // namespace sluice::smb::server
