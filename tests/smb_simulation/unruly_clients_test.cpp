#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/simulation.hpp"
#include "tests/smb_simulation/unruly_client.hpp"
#include "tests/smb_simulation/world.hpp"

// Logging off, closing, disconnecting, breaking, cancelling and hanging up in every order: whatever clients
// do, when they are gone nothing of theirs is left.

namespace sluice::smb_simulation {
namespace {

using clients = std::vector<std::unique_ptr<unruly_client>>;

unruly_client& connect(world& to, clients& all, const unruly_client::habits& how) {
    all.push_back(std::make_unique<unruly_client>(*to.loop, to.connect(), to.clock, how));
    return *all.back();
}

void live_and_leave(std::uint64_t seed, const io::simulation_options& options, bool loses_connections) {
    world simulated(options, seed);
    clients all;
    seeded_random random(seed);
    const std::uint64_t count = 2 + random.below(4);
    for (std::uint64_t i = 0; i != count; ++i) {
        unruly_client& client =
            connect(simulated, all,
                    {.seed = seed * 100 + i, .requests = static_cast<unsigned>(20 + random.below(200))});
        simulated.clients.spawn(client.live());
    }
    simulated.run();
    ASSERT_EQ(simulated.clients.size(), 0U) << "a client waits for ever: " << simulated.loop->stalled();

    unsigned successes = 0;
    for (const auto& client : all) {
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
        clients all;
        simulated.clients.spawn(connect(simulated, all, {.seed = 5}).live());
        simulated.run();
        digest = simulated.loop->digest();
        simulated.stop();
    }
    EXPECT_EQ(digests[0], digests[1]);
}

}  // namespace
}  // namespace sluice::smb_simulation
