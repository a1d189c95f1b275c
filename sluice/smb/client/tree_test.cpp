#include "sluice/smb/client/tree.hpp"

#include <gtest/gtest.h>

#include "tests/smb_client/rig.hpp"

// Tree connections, and what their calls report.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

class client_tree : public testing::Test {
protected:
    client_tree() : client(world) {}
    void SetUp() override { ASSERT_FALSE(client.error) << client.error->message(); }

    template <class T>
    [[nodiscard]] static nt_status refusal(const outcome<T>& of) {
        return of ? nt_status::success : of.error().status();
    }

    rig world;
    logged_on client;
};

TEST_F(client_tree, fails_for_a_share_that_does_not_exist) {
    EXPECT_EQ(refusal(world.wait_for(tree::connect(*client.session, "none"))), nt_status::bad_network_name);
}

TEST_F(client_tree, fails_for_a_share_without_files) {
    // More often than a session may have tree connections.
    for (std::size_t i = 0; i != trees_per_session_max + 1; ++i) {
        const auto pipes = world.wait_for(tree::connect(*client.session, "IPC$"));
        ASSERT_FALSE(pipes);
        ASSERT_EQ(pipes.error().which(), client_error::kind::policy) << pipes.error().message();
    }
}

TEST_F(client_tree, rejects_a_path_with_invalid_utf_8) {
    const auto opened = world.wait_for(client.tree->open("\xff", {}));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().which(), client_error::kind::policy);
}

TEST_F(client_tree, does_not_remove_a_directory_as_a_file) {
    ASSERT_TRUE(world.wait_for(client.tree->create_directory("d")));
    EXPECT_EQ(refusal(world.wait_for(client.tree->remove("d", false))), nt_status::file_is_a_directory);
    EXPECT_EQ(refusal(world.wait_for(client.tree->remove("d", true))), nt_status::success);
    EXPECT_EQ(refusal(world.wait_for(client.tree->remove("d", true))), nt_status::object_name_not_found);
}

TEST_F(client_tree, reports_no_interfaces_if_the_server_names_none) {
    const auto found = world.wait_for(client.tree->interfaces(445));
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_TRUE(found->empty());
}

TEST_F(client_tree, that_was_disconnected_opens_nothing) {
    world.wait_for(client.tree->disconnect());
    EXPECT_EQ(refusal(world.wait_for(client.tree->status(""))), nt_status::network_name_deleted);
}

}  // namespace
}  // namespace sluice::smb_client_testing
