#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"

// Controls of the connection: interfaces, the negotiation, resilient opens, referrals.

namespace sluice::smb_simulation {
namespace {

using smb::wire::command;
using smb::wire::control_code;
using smb::wire::nt_status;

std::vector<smb::server::network_interface> two_interfaces() {
    return {{.address = io::socket_address::ip("192.0.2.7", 0).value(),
             .index = 2,
             .bits_per_second = 10'000'000'000},
            {.address = io::socket_address::ip("2001:db8::7", 0).value(), .index = 2}};
}

void advertise_two(smb::server::server_configuration& rules) {
    rules.interfaces = two_interfaces;
}

compliant_client::answer interfaces_for(compliant_client& client) {
    EXPECT_EQ(client.log_on("u", "p"), nt_status::success);
    EXPECT_EQ(client.connect_tree("files"), nt_status::success);
    return client.call(command::ioctl,
                       smb::wire::ioctl_args{.code = control_code::query_network_interface_info,
                                             .file = smb::wire::file_id_of_previous,
                                             .output_bytes_max = 4096});
}

TEST(network_interfaces, are_returned_with_index_speed_and_address) {
    world serving(io::simulation_options{.seed = 1}, 1, advertise_two);
    {
        compliant_client client(serving);
        const auto answer = interfaces_for(client);
        ASSERT_EQ(answer.status(), nt_status::success);
        const auto reply = smb::wire::decode_ioctl_reply(answer.message()).value();
        const auto reported = smb::wire::decode_network_interfaces(reply.output).value();
        ASSERT_EQ(reported.size(), 2U);
        EXPECT_EQ(reported[0].index, 2U);
        EXPECT_EQ(reported[0].link_speed_bits_per_second, 10'000'000'000U);
        EXPECT_FALSE(reported[0].ipv6);
        EXPECT_EQ(reported[0].address[3], std::byte{7});
        EXPECT_TRUE(reported[1].ipv6);
        EXPECT_EQ(reported[1].address[15], std::byte{7});
    }
    serving.stop();
}

void advertise_two_of_smb2(smb::server::server_configuration& rules) {
    advertise_two(rules);
    rules.dialect_max = smb::wire::dialect::smb_2_1;
}

TEST(network_interfaces, are_returned_in_older_dialects) {
    world serving(io::simulation_options{.seed = 1}, 1, advertise_two_of_smb2);
    {
        compliant_client client(serving);
        const auto answer = interfaces_for(client);
        ASSERT_EQ(answer.status(), nt_status::success);
        const auto reply = smb::wire::decode_ioctl_reply(answer.message()).value();
        EXPECT_EQ(smb::wire::decode_network_interfaces(reply.output).value().size(), 2U);
    }
    serving.stop();
}

class session_controls : public command_test {
protected:
    nt_status make_resilient(const smb::wire::file_id& file, std::chrono::milliseconds timeout) {
        std::array<std::byte, 8> room{};
        byte_writer writer(room);
        encode(writer,
               smb::wire::resiliency_request{.timeout_ms = static_cast<std::uint32_t>(timeout.count())});
        return control(control_code::lmr_request_resiliency, file, *writer.finish()).status();
    }
};

TEST_F(session_controls, report_no_interfaces_where_there_are_none_to_report) {
    const auto said = control(control_code::query_network_interface_info, smb::wire::file_id_of_no_file);
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_TRUE(output_of_control(said).empty());
}

TEST_F(session_controls, end_the_connection_of_a_client_that_negotiated_something_else) {
    std::array<std::byte, 64> room{};
    byte_writer writer(room);
    encode(writer, smb::wire::validate_negotiate_request{.dialects = {0x0202}});
    EXPECT_EQ(control(control_code::validate_negotiate_info, smb::wire::file_id_of_no_file, *writer.finish())
                  .status(),
              nt_status::network_name_deleted);
}

TEST_F(session_controls, know_no_distributed_file_system) {
    EXPECT_EQ(control(control_code::dfs_get_referrals, smb::wire::file_id_of_no_file).status(),
              nt_status::not_found);
    ASSERT_EQ(client().connect_tree("IPC$"), nt_status::success);
    EXPECT_EQ(control(control_code::dfs_get_referrals, smb::wire::file_id_of_no_file).status(),
              nt_status::fs_driver_required);
}

TEST_F(session_controls, make_files_resilient_for_no_longer_than_the_limit) {
    const smb::wire::file_id file = open_for(smb::wire::file_all_access);
    EXPECT_EQ(make_resilient(file, smb::server::limits::durable_timeout_max), nt_status::success);
    EXPECT_EQ(make_resilient(file, smb::server::limits::durable_timeout_max + std::chrono::milliseconds(1)),
              nt_status::invalid_parameter);
    EXPECT_EQ(make_resilient(open_directory(), std::chrono::milliseconds(1)),
              nt_status::invalid_device_request);
}

}  // namespace
}  // namespace sluice::smb_simulation
