#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/smb_client/rig.hpp"

// The client over connections that end, pause and deliver in segments: it reports errors, never
// hangs, and never returns wrong bytes.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component

// Uses some of every operation. Returns whether all succeeded.
[[nodiscard]] io::task<bool> use_share(tree& in) {
    const open_options how{.access = smb::wire::file_generic_read | smb::wire::file_generic_write,
                           .disposition = smb::wire::create_disposition::open_if};
    auto opening = in.open("f", how);
    const auto file = co_await std::move(opening);
    if (not file) co_return false;
    const std::vector<std::byte> data(50'000, std::byte{7});
    auto writing = (*file)->co_write(data, 0);
    const auto wrote = co_await std::move(writing);
    if (not wrote) co_return false;
    std::vector<std::byte> back(data.size());
    auto reading = (*file)->co_read(back, 0);
    const auto read = co_await std::move(reading);
    if (not read) co_return false;
    EXPECT_TRUE(back == data) << "a successful read returned wrong bytes";
    auto listing = list(in, "");
    const auto listed = co_await std::move(listing);
    if (not listed) co_return false;
    EXPECT_EQ(listed->size(), 1U);
    auto close_task = (*file)->co_close();
    const auto closed = co_await std::move(close_task);
    co_return closed.has_value();
}

[[nodiscard]] io::task<bool> whole_life(dependencies world, io::socket_handle socket) {
    const auto who = rig::who();
    auto opening = connection::open(world, std::move(socket), {.server_name = "server"});
    auto opened = co_await std::move(opening);
    if (not opened) co_return false;
    bool is_good = false;
    {
        auto logging_on = session::log_on(**opened, who);
        const auto logged_on = co_await std::move(logging_on);
        if (logged_on) {
            auto connecting = tree::connect(**logged_on, "files");
            const auto connected = co_await std::move(connecting);
            if (connected) {
                auto using_it = use_share(**connected);
                is_good = co_await std::move(using_it);
            }
        }
    }
    auto close_task = (*opened)->close();
    co_await std::move(close_task);
    co_return is_good;
}

io::task<void> record(io::task<bool> what, std::optional<bool>& outcome) {
    outcome = co_await std::move(what);
}

// Ends the connection after `steps` steps of the loop. Returns std::nullopt if the test ended
// before.
std::optional<bool> live_until(int steps) {
    rig world;
    io::socket_handle socket = world.connect();
    const int ours = ::dup(socket.native().descriptor);
    std::optional<bool> outcome;
    io::task_group running(*world.loop);
    running.spawn(record(whole_life(world.dependencies(), std::move(socket)), outcome));
    for (int step = 0; step != steps and not outcome; ++step)
        (void)world.loop->run(1);
    const bool was_over = outcome.has_value();
    ::shutdown(ours, SHUT_RDWR);
    while (not outcome and world.loop->run().value_or(0) > 0) {}
    ::close(ours);
    EXPECT_TRUE(outcome) << "it hangs when the connection ends after " << steps
                         << " steps: " << world.loop->stalled();
    if (not outcome) {
        running.cancel();
        while (not outcome and world.loop->run().value_or(0) > 0) {}
    }
    if (was_over) return std::nullopt;
    return outcome;
}

TEST(client_faults, a_connection_that_ends_at_any_point_causes_errors_and_no_hang) {
    int steps = 0;
    int failures = 0;
    for (std::optional<bool> lived = false; lived; ++steps) {
        lived = live_until(steps);
        if (lived and not*lived) ++failures;
        ASSERT_LT(steps, 2000);
    }
    EXPECT_GT(steps, 30) << "the test covered too few steps";
    EXPECT_GT(failures, steps / 2);
}

TEST(client_faults, segments_and_pauses_change_nothing) {
    for (std::uint64_t seed = 1; seed != 20; ++seed) {
        rig world(nullptr, seed, {.seed = seed, .short_transfers = 500, .spurious_waits = 300});
        EXPECT_TRUE(world.wait_for(whole_life(world.dependencies(), world.connect()))) << "seed " << seed;
    }
}

TEST(client_faults, a_silent_server_is_abandoned) {
    rig world;
    auto pair = io::socket_handle::pair().value();
    ASSERT_TRUE(pair.first.set_multiplexer(world.loop.get()));
    const auto before = world.loop->now();
    const auto opened = world.wait_for(
        connection::open(world.dependencies(), std::move(pair.first), {.server_name = "server"}));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), ETIMEDOUT);
    EXPECT_GE(world.loop->now() - before, limits::connect_timeout);
    EXPECT_LT(world.loop->now() - before, 2 * limits::connect_timeout);
}

TEST(client_faults, a_cancelled_request_ends_with_its_connection) {
    rig world;
    logged_on client(world);
    ASSERT_FALSE(client.error);
    io::cancel_scope scope;
    std::optional<bool> outcome;
    io::task_group running(*world.loop);
    running.spawn(record(io::in_scope(scope, use_share(*client.tree)), outcome));
    for (int step = 0; step != 3; ++step)
        (void)world.loop->run(1);
    scope.cancel();
    while (not outcome and world.loop->run().value_or(0) > 0) {}
    ASSERT_TRUE(outcome);
    EXPECT_FALSE(*outcome);
    EXPECT_TRUE(client.connection->is_broken());
}

}  // namespace
}  // namespace sluice::smb_client_testing
