// The notification of clients before a server stops ([MS-SMB2] 2.2.44).

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <semaphore>
#include <span>
#include <utility>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "sluice/smb/wire/message/server_notification.hpp"
#include "tests/smb_client/relay.hpp"
#include "tests/smb_client/rig.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"
#include "tests/smb_simulation/world/server_on_loops.hpp"

namespace sluice::smb_client_testing {
namespace {

using smb::client::connection_options;
using smb::server::protection;
using smb::server::server_configuration;
using smb::wire::header_flags;

constexpr std::size_t flags_offset = 16;

[[nodiscard]] bool is_notification(std::span<const std::byte> frame) {
    const auto header = smb::wire::decode_header(frame);
    return header and header->command == smb::wire::command::server_to_client_notification;
}

// In simulated time. The timers of a connection never end.
[[nodiscard]] io::task<void> a_second(io::io_multiplexer& loop) {
    const deadline until(std::chrono::seconds(1));
    (void)co_await io::co_sleep(loop, until);
}

// A client that a relay, which may change the notification, separates from the server.
struct stopped_client {
    explicit stopped_client(rig& in, connection_options options = {}, relay::editor edit = {})
        : between(*in.loop, in.connect(),
                  [this, change = std::move(edit)](std::vector<std::byte>& messages) {
                      if (not is_notification(messages)) return;
                      notification = messages;
                      if (change) change(messages);
                  }),
          client(in, std::move(options), between.take_clients_end()) {
        EXPECT_FALSE(client.error) << client.error->message();
        in.wait_for(in.server->announce_stop());
        in.wait_for(a_second(*in.loop));
    }

    // Returns the error of the next request; std::nullopt if it is answered.
    [[nodiscard]] std::optional<smb::client::client_error> failure() {
        const auto answer = client.where.wait_for(
            client.connection->call(smb::wire::command::echo, smb::wire::echo_args{}, {.step = "echo"}));
        return answer ? std::nullopt : std::optional(answer.error());
    }

    std::vector<std::byte> notification;
    relay between;
    logged_on client;
};

TEST(a_server_that_stops, notifies_a_signing_client_that_its_session_is_closed) {
    rig world;
    stopped_client one(world);
    ASSERT_FALSE(one.notification.empty());
    const auto header = smb::wire::decode_header(one.notification);
    EXPECT_EQ(header->message_id, ~std::uint64_t{0});
    EXPECT_EQ(header->credits, 0U);
    EXPECT_EQ(header->tree_id, 0U);
    EXPECT_NE(header->session_id, 0U);
    EXPECT_EQ(header->flags, header_flags::response | header_flags::signed_message);
    EXPECT_TRUE(smb::wire::decode_server_notification(*smb::wire::message_view::of(one.notification)));
    const auto failure = one.failure();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code(), ECONNRESET) << failure->message();
    EXPECT_TRUE(failure->is_of_connection());
}

TEST(a_server_that_stops, encrypts_the_notification_if_the_session_requires_it) {
    rig world([](server_configuration& with) { with.encryption = protection::required; });
    stopped_client one(world);
    EXPECT_TRUE(one.notification.empty()) << "the relay sees no plain notification";
    const auto failure = one.failure();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code(), ECONNRESET) << failure->message();
}

TEST(a_server_that_stops, notifies_no_client_of_an_earlier_dialect) {
    rig world;
    stopped_client one(world, {.server_name = "server", .dialect_max = smb::wire::dialect::smb_3_0_2});
    EXPECT_TRUE(one.notification.empty());
    EXPECT_FALSE(one.failure());
}

TEST(a_server_that_stops, notifies_no_client_without_the_capability) {
    rig world;
    {
        smb_simulation::compliant_client client(world, {smb::wire::signing_algorithm::aes_cmac});
        EXPECT_EQ(client.log_on("u", "p"), smb::wire::nt_status::success);
        world.wait_for(world.server->announce_stop());
        world.wait_for(a_second(*world.loop));
        EXPECT_TRUE(std::ranges::find(client.arrivals(), ~std::uint64_t{0}) == client.arrivals().end());
    }
}

TEST(a_server_that_stops, announces_it_once) {
    rig world;
    stopped_client one(world);
    world.wait_for(world.server->announce_stop());  // a second nonce ends the process
}

TEST(a_server_that_stops, does_not_wait_for_a_stuck_loop_to_notify_its_clients) {
    std::binary_semaphore until(0);
    smb_simulation::server_on_loops served(2, smb_simulation::in_memory);
    const io::socket_handle on_first = served.connect(1);
    io::socket_handle on_second = served.connect(1);
    served.serve({[&] {
        const auto loop = io::make_epoll_multiplexer(0).value();
        system_random secrets;
        EXPECT_TRUE(on_second.set_multiplexer(loop.get()));
        auto opened = io::sync_wait(
            *loop, smb::client::connection::open({*loop, secrets, served.clock()}, std::move(on_second),
                                                 {.server_name = "server"}));
        ASSERT_TRUE(opened);
        const auto connection = opened->release();
        auto logged_on = io::sync_wait(*loop, smb::client::session::log_on(*connection, rig::who()));
        EXPECT_TRUE(logged_on);
        served.hold_up(1, until);
        EXPECT_TRUE(served.announce_stop()) << "the loop is stuck";
        until.release();
        io::sync_wait(*loop, connection->close());
    }});
}

TEST(a_client, breaks_the_connection_if_a_notification_has_a_wrong_signature) {
    rig world;
    stopped_client one(world, {}, [](std::vector<std::byte>& messages) { messages.back() ^= std::byte{1}; });
    const auto failure = one.failure();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code(), EPROTO) << failure->message();
}

TEST(a_client, ignores_an_unsigned_notification_of_a_session_with_keys) {
    rig world;
    stopped_client one(world, {}, [](std::vector<std::byte>& messages) {
        messages[flags_offset] = std::byte{1};  // response
    });
    EXPECT_FALSE(one.failure());
}

TEST(a_client, ignores_a_notification_of_another_type) {
    rig world;
    stopped_client one(world, {}, [](std::vector<std::byte>& messages) {
        messages[smb::wire::header_bytes + 4] = std::byte{7};
    });
    EXPECT_FALSE(one.failure());
}

}  // namespace
}  // namespace sluice::smb_client_testing
