#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sluice/io/task_group.hpp"
#include "tests/simulation.hpp"
#include "tests/smb_simulation/server_world.hpp"
#include "tests/smb_simulation/unruly_client.hpp"

// Logging off, closing, disconnecting, breaking, cancelling and hanging up in every order: whatever clients
// do, when they are gone nothing of theirs is left.

namespace sluice::smb_simulation {
namespace {

using smb::server::smb_server;

struct world : server_world {
    world(const io::simulation_options& options, std::uint64_t seed)
        : server_world(options, seed), clients(*loop) {}

    unruly_client& connect(const unruly_client::habits& how) {
        all.push_back(std::make_unique<unruly_client>(*loop, server_world::connect(), clock, how));
        return *all.back();
    }

    io::task_group clients;
    std::vector<std::unique_ptr<unruly_client>> all;
};

void live_and_leave(std::uint64_t seed, const io::simulation_options& options, bool loses_connections) {
    world simulated(options, seed);
    seeded_random random(seed);
    const std::uint64_t count = 2 + random.below(4);
    for (std::uint64_t i = 0; i != count; ++i) {
        unruly_client& client = simulated.connect(
            {.seed = seed * 100 + i, .requests = static_cast<unsigned>(20 + random.below(200))});
        simulated.clients.spawn(client.live());
    }
    simulated.run();
    ASSERT_EQ(simulated.clients.size(), 0U) << "a client waits for ever: " << simulated.loop->stalled();

    unsigned successes = 0;
    for (const auto& client : simulated.all) {
        EXPECT_EQ(client->complaint(), "");
        successes += client->successes();
    }
    if (not loses_connections) EXPECT_GT(successes, count * 4) << "clients got in, and something done";
    const auto left = simulated.server->gauges();
    EXPECT_EQ(left.connections, 0U) << simulated.loop->stalled();
    EXPECT_EQ(left.sessions, 0U) << "no session outlives its connection";

    simulated.stop();
}

TEST(smb_server, is_empty_again_after_clients_that_end_everything_in_every_order) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(60)) {
        const testing_by_simulation::replayable here(seed);
        live_and_leave(seed, io::simulation_options::rough(seed), false);
        if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(smb_server, is_empty_again_after_connections_that_break_at_any_byte) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(60)) {
        const testing_by_simulation::replayable here(seed);
        live_and_leave(seed, io::simulation_options::hostile(seed), true);
        if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(smb_server, does_the_same_again_from_the_same_seed) {
    std::uint64_t digests[2] = {};
    for (std::uint64_t& digest : digests) {
        world simulated(io::simulation_options::rough(5), 5);
        simulated.clients.spawn(simulated.connect({.seed = 5}).live());
        simulated.run();
        digest = simulated.loop->digest();
        simulated.stop();
    }
    EXPECT_EQ(digests[0], digests[1]);
}

}  // namespace
}  // namespace sluice::smb_simulation
