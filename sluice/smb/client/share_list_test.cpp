#include "sluice/smb/client/share_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/smb_client/rig.hpp"

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component

TEST(share_list, has_the_shares_of_the_server) {
    rig world;
    logged_on client(world);
    ASSERT_FALSE(client.error) << client.error->message();
    const auto listed = world.wait_for(list_shares(*client.session));
    ASSERT_TRUE(listed) << listed.error().message();
    const auto has = [&](std::string_view name, std::uint32_t type) {
        return std::ranges::any_of(*listed, [&](const smb::wire::rpc_share& each) {
            return each.name == name and (each.type & 0xFF) == type;
        });
    };
    EXPECT_TRUE(has("IPC$", smb::wire::rpc_share::ipc));
    EXPECT_EQ(std::ranges::count(*listed, smb::wire::rpc_share::disk_tree, &smb::wire::rpc_share::type), 1);
}

TEST(share_list, leaves_no_tree_connection) {
    rig world;
    logged_on client(world);
    ASSERT_FALSE(client.error) << client.error->message();
    for (std::size_t i = 0; i != trees_per_session_max + 1; ++i) {
        const auto listed = world.wait_for(list_shares(*client.session));
        ASSERT_TRUE(listed) << listed.error().message();
    }
}

}  // namespace
}  // namespace sluice::smb_client_testing
