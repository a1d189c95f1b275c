#include "sluice/smb/client/connection.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "sluice/smb/wire/message/echo.hpp"
#include "tests/smb_client/rig.hpp"

// A connection breaks as a whole.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

class client_connection : public testing::Test {
protected:
    client_connection() : client(world) {}
    void SetUp() override { ASSERT_FALSE(client.error) << client.error->message(); }

    [[nodiscard]] outcome<reply> echo() {
        return world.wait_for(
            client.connection->call(smb::wire::command::echo, smb::wire::echo_args{}, {.step = "echo"}));
    }

    rig world;
    logged_on client;
};

TEST_F(client_connection, has_nothing_in_flight_after_a_reply) {
    EXPECT_TRUE(echo());
    EXPECT_EQ(client.connection->in_flight(), 0U);
}

TEST_F(client_connection, that_broke_fails_every_request_with_the_same_error) {
    client.connection->break_soon(client_error::of_io("test", ECONNRESET));
    for (int i = 0; i != 2; ++i) {
        const auto answered = echo();
        ASSERT_FALSE(answered);
        EXPECT_EQ(answered.error().code(), ECONNRESET);
        EXPECT_TRUE(answered.error().is_of_connection());
    }
    EXPECT_TRUE(client.connection->is_broken());
}

TEST_F(client_connection, skips_no_more_message_ids_than_it_has_credits) {
    EXPECT_FALSE(client.connection->skip_to(std::uint64_t{1} << 40));
    EXPECT_TRUE(echo());
}

}  // namespace
}  // namespace sluice::smb_client_testing
