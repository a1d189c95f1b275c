#include "sluice/smb/server/metadata/default_security.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/server/metadata/user_sids.hpp"
#include "sluice/smb/wire/security/access_check.hpp"

namespace sluice::smb::server {
namespace {

using wire::access_mask;
using wire::descriptor_control;
using wire::security_descriptor;
using wire::security_information;

const user_identity anna{.name = "anna", .domain = {}};
const user_identity guest{.name = "someone", .domain = {}, .is_guest = true};
const vfs::acting_user acting{.id = 1000, .groups = {100}};
constexpr wire::sid anybody = wire::sid_of_unix_user(7);
constexpr wire::sid team = wire::sid_of_unix_group(8);
constexpr wire::sid somebody = wire::sid_of_unix_user(9);

[[nodiscard]] access_mask rights_of(const user_identity& user, const vfs::metadata& file,
                                    const std::optional<vfs::acting_user>& acts_as) {
    const security_descriptor security = default_security(file, user, acts_as);
    return wire::access_check(security, token_of(user, acts_as), access_mask::maximum_allowed).granted;
}

TEST(default_security, gives_who_logged_on_full_control_of_the_served_users_files) {
    const vfs::metadata file{.user_id = 1000, .group_id = 100, .permission_bits = 0600};
    EXPECT_EQ(rights_of(anna, file, acting), wire::file_all_access);
}

TEST(default_security, gives_a_logged_on_user_full_control_if_the_volume_acts_as_no_particular_user) {
    const vfs::metadata file{.user_id = 4711, .permission_bits = 0};
    EXPECT_EQ(rights_of(anna, file, std::nullopt), wire::file_all_access);
}

TEST(default_security, follows_the_mode_for_files_of_other_users) {
    const vfs::metadata readable{.user_id = 1, .group_id = 1, .permission_bits = 0604};
    const vfs::metadata secret{.user_id = 1, .group_id = 1, .permission_bits = 0600};
    EXPECT_TRUE(wire::has(rights_of(anna, readable, acting), access_mask::read_data));
    EXPECT_FALSE(wire::has(rights_of(anna, readable, acting), access_mask::write_data));
    EXPECT_FALSE(wire::has(rights_of(anna, secret, acting), access_mask::read_data));
}

TEST(default_security, counts_the_groups_the_volume_acts_with) {
    const vfs::metadata file{.user_id = 1, .group_id = 100, .permission_bits = 0060};
    EXPECT_TRUE(wire::has(rights_of(anna, file, acting), access_mask::write_data));
    EXPECT_FALSE(wire::has(rights_of(guest, file, acting), access_mask::read_data));
}

TEST(default_security, gives_guests_no_more_than_the_mode_gives_others) {
    const vfs::metadata file{.user_id = 1000, .permission_bits = 0644};
    EXPECT_TRUE(wire::has(rights_of(guest, file, acting), access_mask::read_data));
    EXPECT_FALSE(wire::has_any(rights_of(guest, file, acting), access_mask::write_data |
                                                                   access_mask::delete_object |
                                                                   access_mask::write_dac));
}

TEST(user_sids, are_the_same_in_any_case_and_differ_between_users) {
    EXPECT_EQ(sid_of(anna), sid_of({.name = "ANNA", .domain = {}}));
    EXPECT_NE(sid_of(anna), sid_of({.name = "anne", .domain = {}}));
    EXPECT_NE(sid_of(anna), sid_of(guest));
}

TEST(user_sids, make_only_who_logged_on_an_authenticated_user) {
    const auto is_in = [](const std::vector<wire::sid>& token, const wire::sid& who) {
        return std::ranges::find(token, who) != token.end();
    };
    EXPECT_TRUE(is_in(token_of(anna, acting), wire::sid_authenticated_users));
    EXPECT_FALSE(is_in(token_of(guest, acting), wire::sid_authenticated_users));
    EXPECT_FALSE(is_in(token_of(guest, acting), wire::sid_of_unix_user(1000)));
}

TEST(security_parts, are_only_those_asked_for) {
    const security_descriptor whole{
        .control = descriptor_control::dacl_present, .owner = somebody, .group = team, .dacl = wire::acl{}};
    const security_descriptor part = selected(whole, security_information::owner);
    EXPECT_EQ(part.owner, somebody);
    EXPECT_FALSE(part.group);
    EXPECT_FALSE(part.dacl);
    EXPECT_FALSE(wire::has(part.control, descriptor_control::dacl_present));
}

TEST(security_parts, that_are_set_leave_the_others_as_they_are) {
    const security_descriptor stored{
        .control = descriptor_control::dacl_present, .owner = somebody, .group = team, .dacl = wire::acl{}};
    const security_descriptor given{.owner = anybody, .group = somebody};
    const security_descriptor whole = merged(stored, given, security_information::owner);
    EXPECT_EQ(whole.owner, anybody);
    EXPECT_EQ(whole.group, team);
    EXPECT_TRUE(whole.dacl);
}

TEST(security_parts, without_a_list_where_one_is_set_are_the_null_list) {
    const security_descriptor stored{.control = descriptor_control::dacl_present, .dacl = wire::acl{}};
    const security_descriptor whole = merged(stored, {}, security_information::dacl);
    EXPECT_FALSE(whole.dacl);
    EXPECT_TRUE(wire::has(whole.control, descriptor_control::dacl_present));
}

TEST(security_parts, are_stored_with_general_rights_as_what_they_mean_for_files) {
    security_descriptor given{.control = descriptor_control::dacl_present, .dacl = wire::acl{}};
    given.dacl->entries = {{.rights = access_mask::generic_read, .who = somebody}};
    const security_descriptor whole = merged({}, given, security_information::dacl);
    EXPECT_EQ(whole.dacl->entries[0].rights, wire::file_generic_read);
}

TEST(security_parts, keep_automatic_inheritance_only_if_it_is_required) {
    const security_descriptor stored{};
    security_descriptor given{
        .control = descriptor_control::dacl_present | descriptor_control::dacl_auto_inherited,
        .dacl = wire::acl{}};
    EXPECT_FALSE(wire::has(merged(stored, given, security_information::dacl).control,
                           descriptor_control::dacl_auto_inherited));
    given.control |= descriptor_control::dacl_auto_inherit_required;
    const security_descriptor whole = merged(stored, given, security_information::dacl);
    EXPECT_TRUE(wire::has(whole.control, descriptor_control::dacl_auto_inherited));
    EXPECT_FALSE(wire::has(whole.control, descriptor_control::dacl_auto_inherit_required));
}

}  // namespace
}  // namespace sluice::smb::server
