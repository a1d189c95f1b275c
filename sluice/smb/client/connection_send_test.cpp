#include "sluice/smb/client/connection.hpp"

#include <gtest/gtest.h>

#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "tests/smb_client/rig.hpp"

// Requests and the credits that they need.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

[[nodiscard]] io::task<void> send_echo(connection& over, int& answered) {
    auto asking = over.call(smb::wire::command::echo, smb::wire::echo_args{}, {.step = "echo"});
    const auto reply = co_await std::move(asking);
    if (reply) ++answered;
}

[[nodiscard]] io::task<int> send_at_once(io::io_multiplexer& loop, connection& over, int count) {
    int answered = 0;
    io::task_group senders(loop);
    for (int i = 0; i != count; ++i)
        senders.spawn(send_echo(over, answered));
    co_await senders.join();
    co_return answered;
}

TEST(client_requests, wait_for_credits_and_are_all_answered) {
    for (const std::uint32_t credits : {1U, 2U, 1024U}) {
        rig world;
        logged_on client(world, {.server_name = "server", .credits_wanted = credits});
        ASSERT_FALSE(client.error) << client.error->message();
        EXPECT_EQ(world.wait_for(send_at_once(*world.loop, *client.connection, 50)), 50) << credits;
        EXPECT_EQ(client.connection->in_flight(), 0U);
    }
}

}  // namespace
}  // namespace sluice::smb_client_testing
