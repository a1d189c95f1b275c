#include "sluice/smb/server/metadata/account_names.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sluice/smb/server/metadata/user_sids.hpp"

namespace sluice::smb::server {
namespace {

using wire::sid_use;

class listed_accounts final : public auth::account_source {
public:
    std::optional<auth::account> find(std::string_view, std::string_view) noexcept override {
        return std::nullopt;
    }
    std::vector<std::string> found_names() const override { return names; }
    std::uint64_t generation() const noexcept override { return changes; }

    std::vector<std::string> names{"Alice", "bob"};
    std::uint64_t changes = 0;
};

class account_names_of_server : public testing::Test {
protected:
    std::string name_of(const wire::sid& who) {
        const auto found = names.of(who);
        return found ? found->domain.name + '\\' + found->name : "unknown";
    }
    std::string sid_text_of(std::string_view name) {
        const auto found = names.named(name);
        return found ? text_of(found->id) : "unknown";
    }
    static wire::sid of_user(std::string name) { return sid_of({.name = std::move(name), .domain = {}}); }

    listed_accounts accounts;
    user_names users{accounts};
    account_names names{"SLUICE", "WORKGROUP", &users};
};

TEST_F(account_names_of_server, name_well_known_sids_and_find_them) {
    EXPECT_EQ(name_of(wire::sid_everyone), "\\Everyone");
    EXPECT_EQ(name_of(wire::sid_creator_owner), "\\CREATOR OWNER");
    EXPECT_EQ(name_of(wire::sid_authenticated_users), "NT AUTHORITY\\Authenticated Users");
    EXPECT_EQ(name_of(wire::sid_local_system), "NT AUTHORITY\\SYSTEM");
    EXPECT_EQ(name_of(wire::sid_administrators), "BUILTIN\\Administrators");
    EXPECT_EQ(name_of(wire::sid_users), "BUILTIN\\Users");
    EXPECT_EQ(sid_text_of("everyone"), "S-1-1-0");
    EXPECT_EQ(sid_text_of("system"), "S-1-5-18");
    EXPECT_EQ(sid_text_of("builtin\\administrators"), "S-1-5-32-544");
    EXPECT_EQ(sid_text_of("BUILTIN\\SYSTEM"), "unknown");
}

TEST_F(account_names_of_server, find_a_user_by_the_sid_in_descriptors) {
    EXPECT_EQ(name_of(of_user("alice")), "SLUICE\\Alice");
    EXPECT_EQ(name_of(of_user("carol")), "unknown");
}

TEST_F(account_names_of_server, find_the_sid_of_a_user_in_every_form_of_the_name) {
    const std::string alice = text_of(of_user("alice"));
    for (const char* const name : {"alice", "ALICE", "SLUICE\\alice", "sluice\\Alice", "WORKGROUP\\alice",
                                   "alice@SLUICE", "alice@workgroup"})
        EXPECT_EQ(sid_text_of(name), alice) << name;
    for (const char* const name : {"", "carol", "OTHER\\alice", "alice@other", "\\alice\\", "@", "\\"})
        EXPECT_EQ(sid_text_of(name), "unknown") << name;
}

TEST_F(account_names_of_server, give_each_account_a_domain_whose_sid_begins_its_own) {
    for (const char* const name : {"alice", "Everyone", "SYSTEM", "Users", "Unix User\\7", "CREATOR GROUP"}) {
        const auto found = names.named(name);
        ASSERT_TRUE(found.has_value()) << name;
        const auto whole = found->id.sub_authorities();
        EXPECT_EQ(wire::sid(found->id.authority(), whole.first(whole.size() - 1)), found->domain.id) << name;
    }
}

TEST_F(account_names_of_server, name_users_and_groups_of_the_host_by_number) {
    EXPECT_EQ(name_of(wire::sid_of_unix_user(1000)), "Unix User\\1000");
    EXPECT_EQ(name_of(wire::sid_of_unix_group(7)), "Unix Group\\7");
    EXPECT_EQ(sid_text_of("unix user\\1000"), "S-1-22-1-1000");
    EXPECT_EQ(sid_text_of("7@Unix Group"), "S-1-22-2-7");
    EXPECT_EQ(names.of(wire::sid_of_unix_user(1))->use, sid_use::user);
    EXPECT_EQ(names.of(wire::sid_of_unix_group(1))->use, sid_use::group);
    for (const char* const name :
         {"Unix User\\", "Unix User\\x", "Unix User\\1x", "Unix User\\-1", "Unix User\\4294967296", "1000"})
        EXPECT_EQ(sid_text_of(name), "unknown") << name;
    EXPECT_EQ(name_of({22, {3, 1}}), "unknown");
    EXPECT_EQ(name_of({22, {1, 1, 1}}), "unknown");
}

TEST_F(account_names_of_server, give_domains_the_use_of_a_domain) {
    EXPECT_EQ(names.of(names.own_domain().id)->use, sid_use::domain);
    EXPECT_EQ(name_of(names.own_domain().id), "SLUICE\\");
    EXPECT_EQ(name_of({5, {32}}), "BUILTIN\\");
    EXPECT_EQ(sid_text_of("sluice"), text_of(names.own_domain().id));
    EXPECT_EQ(sid_text_of("BUILTIN\\"), "S-1-5-32");
}

TEST_F(account_names_of_server, name_a_user_by_the_relative_id_in_the_domain_of_the_server) {
    const std::uint32_t number = of_user("alice").sub_authorities().back();
    std::vector<std::uint32_t> made(names.own_domain().id.sub_authorities().begin(),
                                    names.own_domain().id.sub_authorities().end());
    made.push_back(number);
    EXPECT_EQ(name_of({5, made}), "SLUICE\\Alice");
    made.back() = number + 1;
    EXPECT_EQ(name_of({5, made}), "unknown");
}

TEST_F(account_names_of_server, list_the_users_by_their_relative_ids) {
    accounts.names = {"Alice", "bob", "carol", "dave"};
    EXPECT_EQ(names.user_count(), 4U);
    std::vector<std::string> listed;
    std::uint32_t last = 0;
    for (auto part = names.users_after(0, 3); not part.empty(); part = names.users_after(last, 3)) {
        EXPECT_LE(part.size(), 3U);
        for (const wire::rpc_account& one : part) {
            EXPECT_EQ(one.id, of_user(one.name));
            EXPECT_GT(one.id.sub_authorities().back(), last);
            last = one.id.sub_authorities().back();
            EXPECT_EQ(names.user_numbered(last), one);
            EXPECT_EQ(names.user_named(one.name), one);
            listed.push_back(one.name);
        }
    }
    std::ranges::sort(listed);
    EXPECT_EQ(listed, accounts.names);
    EXPECT_EQ(names.user_numbered(last + 1), std::nullopt);
    EXPECT_EQ(names.user_named("ALICE"), names.named("alice"));
    EXPECT_EQ(names.user_named("SLUICE\\alice"), std::nullopt) << "without a domain";
    EXPECT_EQ(names.user_named("Everyone"), std::nullopt);
}

TEST_F(account_names_of_server, follow_changes_of_the_users) {
    EXPECT_EQ(name_of(of_user("alice")), "SLUICE\\Alice");
    accounts.names = {"carol"};
    ++accounts.changes;
    EXPECT_EQ(name_of(of_user("alice")), "unknown");
    EXPECT_EQ(sid_text_of("carol"), text_of(of_user("carol")));
}

TEST_F(account_names_of_server, keep_users_from_those_who_may_not_ask) {
    account_names of_guest("SLUICE", "WORKGROUP", nullptr);
    EXPECT_FALSE(of_guest.of(of_user("alice")).has_value());
    EXPECT_FALSE(of_guest.named("alice").has_value());
    EXPECT_TRUE(of_guest.named("Everyone").has_value());
    EXPECT_TRUE(of_guest.users_after(0, 10).empty());
    EXPECT_EQ(of_guest.user_count(), 0U);
    EXPECT_FALSE(of_guest.user_named("alice").has_value());
    EXPECT_FALSE(of_guest.user_numbered(of_user("alice").sub_authorities().back()).has_value());
}

}  // namespace
}  // namespace sluice::smb::server
