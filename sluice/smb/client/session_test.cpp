#include "sluice/smb/client/session.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/smb_client/rig.hpp"

// Sessions: logon, logoff, further channels.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

class client_session : public testing::Test {
protected:
    [[nodiscard]] std::unique_ptr<connection> open(connection_options options = {}) {
        options.server_name = "server";
        auto opened = world.wait_for(connection::open(world.dependencies(), world.connect(), options));
        EXPECT_TRUE(opened) << opened.error().message();
        return opened->release();
    }

    rig world;
};

TEST_F(client_session, anonymous_logon_fails_on_a_server_without_guests) {
    const auto over = open();
    auto nameless = rig::who();
    nameless.user.clear();
    nameless.hash.reset();
    const auto made = world.wait_for(session::log_on(*over, nameless));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().status(), nt_status::access_denied);
    world.wait_for(over->close());
}

TEST_F(client_session, that_has_logged_off_connects_to_no_share) {
    const auto over = open();
    const auto made = world.wait_for(session::log_on(*over, rig::who()));
    ASSERT_TRUE(made);
    world.wait_for((*made)->log_off());
    const auto share = world.wait_for(tree::connect(**made, "files"));
    ASSERT_FALSE(share);
    EXPECT_EQ(share.error().status(), nt_status::user_session_deleted);
    world.wait_for(over->close());
}

TEST_F(client_session, before_smb_3_has_one_channel) {
    const connection_options old{.server_name = "server", .dialect_max = smb::wire::dialect::smb_2_1};
    const auto first = open(old);
    const auto further = open(old);
    const auto made = world.wait_for(session::log_on(*first, rig::who()));
    ASSERT_TRUE(made);
    const auto bound = world.wait_for((*made)->bind(*further, rig::who()));
    ASSERT_FALSE(bound);
    EXPECT_EQ(bound.error().which(), client_error::kind::policy);
    world.wait_for(further->close());
    world.wait_for(first->close());
}

TEST_F(client_session, uses_the_channels_that_are_left) {
    connection_options options{.server_name = "server", .channels = 2};
    const auto first = open(options);
    options.client_guid = first->agreed().client_guid;
    const auto further = open(options);
    const auto made = world.wait_for(session::log_on(*first, rig::who()));
    ASSERT_TRUE(made);
    ASSERT_TRUE(world.wait_for((*made)->bind(*further, rig::who())));
    first->break_soon(client_error::of_io("test", ECONNRESET));
    world.wait_for(first->close());
    EXPECT_EQ(&(*made)->first(), further.get());
    EXPECT_EQ((*made)->channel_sequence(), 0U);
    (*made)->forget_lost();
    EXPECT_EQ((*made)->channel_sequence(), 1U);
    EXPECT_EQ((*made)->channels().size(), 1U);
    EXPECT_TRUE(world.wait_for(tree::connect(**made, "files")));
    world.wait_for(further->close());
}

}  // namespace
}  // namespace sluice::smb_client_testing
