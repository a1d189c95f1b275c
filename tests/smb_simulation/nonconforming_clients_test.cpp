#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/simulation.hpp"
#include "tests/smb_simulation/clients/nonconforming_client.hpp"
#include "tests/smb_simulation/world/world.hpp"

// Logging off, closing, disconnecting, breaking and cancelling in random order: whatever the
// clients do, after their end the server holds no resources for them.

namespace sluice::smb_simulation {
namespace {

using clients = std::vector<std::unique_ptr<nonconforming_client>>;

nonconforming_client& connect(world& to, clients& all, const nonconforming_client::habits& how) {
    all.push_back(std::make_unique<nonconforming_client>(*to.loop, to.connect(), to.clock, how));
    return *all.back();
}

struct circumstances {
    io::simulation_options options;
    bool loses_connections = false;
    bool comes_back = false;  // every client, once
};

/// Runs clients, and returns how many durable handles they reconnected to.
unsigned live_and_leave(std::uint64_t seed, const circumstances& how) {
    world simulated(how.options, seed);
    clients all;
    seeded_random random(seed);
    // Only a few if they come back, because other clients make the server end durable handles.
    const std::uint64_t count = how.comes_back ? 1 + random.below(2) : 2 + random.below(4);
    for (std::uint64_t i = 0; i != count; ++i) {
        nonconforming_client::habits habits{.seed = seed * 100 + i,
                                            .requests = static_cast<unsigned>(20 + random.below(200))};
        if (how.comes_back) habits.requests = static_cast<unsigned>(5 + random.below(40));
        if (how.comes_back) habits.dial = [&simulated] { return simulated.connect(); };
        simulated.clients.spawn(connect(simulated, all, habits).live());
    }
    simulated.run();
    EXPECT_EQ(simulated.clients.size(), 0U) << "a client never ends: " << simulated.loop->stalled();

    unsigned successes = 0;
    unsigned reclaimed = 0;
    for (const auto& client : all) {
        EXPECT_EQ(client->problem(), "");
        successes += client->successes();
        reclaimed += client->reclaimed();
    }
    if (not how.loses_connections) EXPECT_GT(successes, count * 4) << "clients connected and succeeded";
    const auto left = simulated.server->gauges();
    EXPECT_EQ(left.connections, 0U) << simulated.loop->stalled();
    EXPECT_EQ(left.sessions, 0U) << "no session outlives its connection";
    simulated.stop();
    return reclaimed;
}

TEST(smb_server, is_empty_after_clients_that_end_everything_in_random_order) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(60)) {
        const testing_by_simulation::replayable here(seed);
        (void)live_and_leave(seed, {.options = io::simulation_options::adversarial(seed)});
        if (testing::Test::HasFailure()) return;
    }
}

TEST(smb_server, is_empty_after_connections_that_break_at_any_byte) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(60)) {
        const testing_by_simulation::replayable here(seed);
        (void)live_and_leave(seed,
                             {.options = io::simulation_options::hostile(seed), .loses_connections = true});
        if (testing::Test::HasFailure()) return;
    }
}

TEST(smb_server, returns_durable_handles_to_clients_that_come_back_and_is_empty_after_their_end) {
    unsigned reclaimed = 0;
    for (const std::uint64_t seed : testing_by_simulation::seeds(40)) {
        const testing_by_simulation::replayable here(seed);
        reclaimed +=
            live_and_leave(seed, {.options = io::simulation_options::adversarial(seed), .comes_back = true});
        if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(reclaimed, 0U) << "no client reconnected to a handle";
}

TEST(smb_server, repeats_its_actions_with_the_same_seed) {
    std::uint64_t digests[2] = {};
    for (std::uint64_t& digest : digests) {
        world simulated(io::simulation_options::adversarial(5), 5);
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
