#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"
#include "tests/smb_simulation/polite_client.hpp"

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

void tell_two(smb::server::server_configuration& rules) {
    rules.interfaces = two_interfaces;
}

TEST(network_interfaces, are_told_with_index_speed_and_address) {
    world serving(io::simulation_options{.seed = 1}, 1, tell_two);
    {
        polite_client client(serving);
        ASSERT_EQ(client.log_on("u", "p"), nt_status::success);
        ASSERT_EQ(client.connect_tree("files"), nt_status::success);
        const auto answer = client.call(
            command::ioctl, smb::wire::ioctl_args{.code = control_code::query_network_interface_info,
                                                  .file = smb::wire::file_id_of_previous,
                                                  .output_bytes_max = 4096});
        ASSERT_EQ(answer.status(), nt_status::success);
        const auto reply = smb::wire::decode_ioctl_reply(answer.message()).value();
        const auto told = smb::wire::decode_network_interfaces(reply.output).value();
        ASSERT_EQ(told.size(), 2U);
        EXPECT_EQ(told[0].index, 2U);
        EXPECT_EQ(told[0].link_speed_bits_per_second, 10'000'000'000U);
        EXPECT_FALSE(told[0].ipv6);
        EXPECT_EQ(told[0].address[3], std::byte{7});
        EXPECT_TRUE(told[1].ipv6);
        EXPECT_EQ(told[1].address[15], std::byte{7});
    }
    serving.stop();
}

}  // namespace
}  // namespace sluice::smb_simulation
