#pragma once

#include <vector>

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/server/metadata/user_sids.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"

namespace sluice::smb_simulation {

/// Returns the self-relative form of a descriptor.
[[nodiscard]] inline std::vector<std::byte> bytes_of_descriptor(const wire::security_descriptor& what) {
    std::vector<std::byte> room(wire::encoded_bytes(what));
    byte_writer writer{mutable_bytes(room)};
    EXPECT_TRUE(wire::encode(writer, what).has_value());
    return room;
}

/// Returns a descriptor with these entries in its DACL.
[[nodiscard]] inline wire::security_descriptor with_dacl(
    std::vector<wire::ace> entries, wire::descriptor_control control = wire::descriptor_control::none) {
    return {
        .control = control | wire::descriptor_control::dacl_present | wire::descriptor_control::self_relative,
        .dacl = wire::acl{.entries = std::move(entries)}};
}

/// Returns the SID of a user of the world.
[[nodiscard]] inline wire::sid sid_of_user(std::string name) {
    return server::sid_of(server::user_identity{.name = std::move(name), .domain = {}});
}

/// Tests of commands that read or write security descriptors.
class security_command_test : public command_test {
protected:
    using command_test::command_test;

    static constexpr auto owner_group_and_dacl = wire::security_information::owner |
                                                 wire::security_information::group |
                                                 wire::security_information::dacl;

    [[nodiscard]] wire::create_reply create_secured(std::string_view name, bytes_view descriptor,
                                                    wire::create_options options = {}) {
        auto how = compliant_client::for_everything();
        how.options = options;
        how.contexts.security_descriptor = descriptor;
        return client().create(name, how);
    }
    nt_status try_create_secured(std::string_view name, bytes_view descriptor) {
        auto how = compliant_client::for_everything();
        how.contexts.security_descriptor = descriptor;
        return client().try_create(name, how);
    }

    nt_status set_security(const wire::file_id& file, const wire::security_descriptor& what,
                           wire::security_information parts = wire::security_information::dacl) {
        const std::vector<std::byte> bytes = bytes_of_descriptor(what);
        return status_of(command::set_info,
                         wire::set_info_args{.type = wire::info_type::security,
                                             .additional_information = wire::bits_of(parts),
                                             .file = file,
                                             .input = bytes});
    }
    /// The bytes of a file's descriptor, as QUERY_INFO returns them.
    [[nodiscard]] std::vector<std::byte> security_bytes_of(
        const wire::file_id& file, wire::security_information parts = owner_group_and_dacl) {
        const auto said = client().call(command::query_info,
                                        wire::query_info_args{.type = wire::info_type::security,
                                                              .output_bytes_max = 65536,
                                                              .additional_information = wire::bits_of(parts),
                                                              .file = file});
        EXPECT_EQ(said.status(), nt_status::success);
        const bytes_view output = output_of(said);
        return {output.begin(), output.end()};
    }
    [[nodiscard]] wire::security_descriptor security_of(
        const wire::file_id& file, wire::security_information parts = owner_group_and_dacl) {
        const std::vector<std::byte> bytes = security_bytes_of(file, parts);
        return wire::decode_security_descriptor(bytes).value();
    }
};

}  // namespace sluice::smb_simulation
