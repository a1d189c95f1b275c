#include "sluice/smb/wire/message/tree_disconnect.hpp"

#include "sluice/smb/server/command/command_testing.hpp"

// TREE_DISCONNECT ([MS-SMB2] 3.3.5.8).

namespace sluice::smb_simulation {
namespace {

class tree_disconnect_command : public command_test {
protected:
    nt_status disconnect() { return status_of(command::tree_disconnect, wire::tree_disconnect_args{}); }
};

TEST_F(tree_disconnect_command, ends_the_tree_connection_with_its_opens) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(disconnect(), nt_status::success);
    EXPECT_EQ(server_of_test().gauges().opens, 0U);
    EXPECT_EQ(close(file), nt_status::network_name_deleted);
    EXPECT_EQ(disconnect(), nt_status::network_name_deleted);
}

TEST_F(tree_disconnect_command, leaves_the_other_tree_connections_of_the_session) {
    const auto first = client().current_ids();
    const wire::file_id file = open_for(wire::file_all_access);
    ASSERT_EQ(client().connect_tree("files"), nt_status::success);
    EXPECT_EQ(disconnect(), nt_status::success);
    client().use_ids(first);
    EXPECT_EQ(close(file), nt_status::success);
}

}  // namespace
}  // namespace sluice::smb_simulation
