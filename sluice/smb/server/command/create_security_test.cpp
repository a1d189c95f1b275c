#include "sluice/base/endian.hpp"
#include "sluice/smb/server/command/security_testing.hpp"
#include "sluice/vfs/node_attached.hpp"

// The security descriptor of a file that a CREATE makes ([MS-SMB2] 2.2.13.2.2, [MS-DTYP] 2.5.3.4).

namespace sluice::smb_simulation {
namespace {

using wire::ace_flags;
using wire::descriptor_control;

const wire::sid user = sid_of_user("u");
constexpr wire::sid somebody = wire::sid_of_unix_user(9);

[[nodiscard]] wire::ace allowed(const wire::sid& who, access_mask rights, ace_flags flags = ace_flags::none) {
    return {.flags = flags, .rights = rights, .who = who};
}

class create_security : public security_command_test {
protected:
    // A directory whose entries are inherited automatically.
    [[nodiscard]] wire::file_id directory_with(std::vector<wire::ace> entries) {
        const wire::file_id made = open_directory();
        entries.push_back(allowed(user, wire::file_all_access));
        EXPECT_EQ(set_security(made, with_dacl(std::move(entries),
                                               descriptor_control::dacl_auto_inherited |
                                                   descriptor_control::dacl_auto_inherit_required)),
                  nt_status::success);
        return made;
    }
};

TEST_F(create_security, is_inherited_from_the_directory) {
    (void)directory_with({allowed(somebody, access_mask::read_data, ace_flags::object_inherit),
                          allowed(wire::sid_creator_owner, access_mask::generic_all,
                                  ace_flags::object_inherit | ace_flags::inherit_only)});
    const auto made = security_of(open_for(wire::file_all_access, "d\\f"));
    const std::vector wanted{allowed(somebody, access_mask::read_data, ace_flags::inherited),
                             allowed(user, wire::file_all_access, ace_flags::inherited)};
    EXPECT_EQ(made.dacl->entries, wanted);
    EXPECT_EQ(made.owner, user);
    EXPECT_TRUE(wire::has(made.control, descriptor_control::dacl_auto_inherited));
}

TEST_F(create_security, that_is_given_precedes_inherited_entries) {
    (void)directory_with({allowed(somebody, access_mask::read_data, ace_flags::object_inherit)});
    const auto given = bytes_of_descriptor(with_dacl({allowed(wire::sid_everyone, access_mask::read_data)}));
    const auto made = security_of(create_secured("d\\f", given).file);
    const std::vector wanted{allowed(wire::sid_everyone, access_mask::read_data),
                             allowed(somebody, access_mask::read_data, ace_flags::inherited)};
    EXPECT_EQ(made.dacl->entries, wanted);
}

TEST_F(create_security, that_is_protected_inherits_nothing) {
    (void)directory_with({allowed(somebody, access_mask::read_data, ace_flags::object_inherit)});
    const std::vector entries{allowed(wire::sid_everyone, access_mask::read_data)};
    const auto given = bytes_of_descriptor(with_dacl(entries, descriptor_control::dacl_protected));
    const auto made = security_of(create_secured("d\\f", given).file);
    EXPECT_EQ(made.dacl->entries, entries);
    EXPECT_TRUE(wire::has(made.control, descriptor_control::dacl_protected));
}

TEST_F(create_security, that_is_not_well_formed_is_refused_and_leaves_no_file) {
    auto bytes = bytes_of_descriptor(with_dacl({allowed(somebody, access_mask::read_data)}));
    bytes.front() = std::byte{2};
    EXPECT_EQ(try_create_secured("f", bytes), nt_status::invalid_security_descr);
    auto how = compliant_client::for_everything();
    how.disposition = wire::create_disposition::open;
    EXPECT_EQ(client().try_create("f", how), nt_status::object_name_not_found);
}

TEST_F(create_security, with_an_audit_list_needs_a_privilege_that_only_auditors_have) {
    wire::security_descriptor given = with_dacl({allowed(somebody, access_mask::read_data)});
    given.sacl = wire::acl{};
    EXPECT_EQ(try_create_secured("f", bytes_of_descriptor(given)), nt_status::privilege_not_held);
    EXPECT_EQ(server_of_test().gauges().opens, 0U);
}

TEST_F(create_security, that_becomes_longer_than_64_KiB_by_inheritance_is_refused) {
    (void)open_directory();
    // In a directory, each of these entries becomes two.
    std::vector<wire::ace> entries(1500, allowed(wire::sid_creator_owner, wire::file_all_access,
                                                 ace_flags::container_inherit | ace_flags::object_inherit));
    entries.push_back(allowed(user, wire::file_all_access));
    vfs::volume& volume = server_of_test().context().find_share("files")->volume();
    const auto directory = volume.find("d", vfs::follow_links::no).value();
    ASSERT_TRUE(directory->attached()->set_security(bytes_of_descriptor(with_dacl(entries))));
    auto how = compliant_client::for_everything();
    EXPECT_EQ(client().try_create("d\\f", how), nt_status::success);
    how.options = wire::create_options::directory_file;
    EXPECT_EQ(client().try_create("d\\e", how), nt_status::invalid_security_descr);
    how.disposition = wire::create_disposition::open;
    EXPECT_EQ(client().try_create("d\\e", how), nt_status::object_name_not_found);
}

// A file of another user. This one may read and write its data, but nothing more.
class stream_of_another_user : public create_security {
protected:
    stream_of_another_user() {
        (void)client().create("f");
        auto given = with_dacl(
            {allowed(user, access_mask::read_data | access_mask::write_data | access_mask::read_attributes)});
        given.owner = somebody;
        vfs::volume& volume = server_of_test().context().find_share("files")->volume();
        const auto file = volume.find("f", vfs::follow_links::no).value();
        EXPECT_TRUE(file->attached()->set_security(bytes_of_descriptor(given)));
    }
    nt_status create_stream(access_mask rights) {
        auto how = compliant_client::for_everything();
        how.desired_access = rights;
        return client().try_create("f:s", how);
    }
};

TEST_F(stream_of_another_user, is_created_with_the_rights_to_the_file) {
    EXPECT_EQ(create_stream(access_mask::write_data), nt_status::success);
}

TEST_F(stream_of_another_user, gives_no_right_that_the_file_denies) {
    for (const access_mask denied :
         {access_mask::write_dac, access_mask::write_owner, access_mask::write_attributes})
        EXPECT_EQ(create_stream(denied | access_mask::write_data), nt_status::access_denied)
            << wire::bits_of(denied);
}

TEST_F(stream_of_another_user, has_the_maximal_access_of_the_file) {
    auto how = compliant_client::for_everything();
    how.desired_access = access_mask::maximum_allowed;
    const auto made = client().create("f:s", how);
    EXPECT_EQ(set_security(made.file, with_dacl({allowed(user, wire::file_all_access)})),
              nt_status::access_denied);
}

TEST_F(create_security, is_returned_as_the_owner_the_group_and_the_dacl) {
    const auto bytes = security_bytes_of(open_for(wire::file_all_access));
    const auto offset_at = [&](std::size_t field) {
        return bytes_view(bytes).from(field)->take<le32>()->value();
    };
    EXPECT_EQ(offset_at(4), 20U);
    EXPECT_LT(offset_at(4), offset_at(8));
    EXPECT_LT(offset_at(8), offset_at(16));
    EXPECT_EQ(offset_at(12), 0U) << "no SACL was asked for";
}

}  // namespace
}  // namespace sluice::smb_simulation
