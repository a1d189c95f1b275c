#include <gtest/gtest.h>

#include "tests/simulation.hpp"
#include "tests/smb_simulation/clients/nonconforming_client.hpp"
#include "tests/smb_simulation/world/loops_world.hpp"

// A server on several simulated loops: the order in which its threads run is drawn from a seed.

namespace sluice::smb_simulation {
namespace {

struct outcome {
    std::uint64_t digest = 0;
    std::uint64_t switches = 0;
    unsigned successes = 0;
};

outcome let_unruly_clients_live(std::uint64_t seed, const loops_world_options& how) {
    loops_world simulated(how);
    std::vector<std::unique_ptr<nonconforming_client>> clients;
    simulated.run([&] {
        seeded_random random(seed);
        const std::uint64_t count = 3 + random.below(4);
        for (std::uint64_t i = 0; i != count; ++i) {
            const auto number = static_cast<std::uint16_t>(1 + i / 2);
            clients.push_back(std::make_unique<nonconforming_client>(
                simulated.clients_loop(), simulated.connect(number), simulated.clock(),
                nonconforming_client::habits{.seed = seed * 100 + i,
                                             .requests = static_cast<unsigned>(20 + random.below(100))}));
            simulated.clients().spawn(clients.back()->live());
        }
    });
    outcome all{.digest = simulated.digest(), .switches = simulated.scheduler().switches()};
    for (const auto& client : clients) {
        EXPECT_EQ(client->problem(), "");
        all.successes += client->successes();
    }
    return all;
}

loops_world_options adversarial(std::uint64_t seed) {
    return {
        .seed = seed,
        .network = io::simulation_options::adversarial(seed),
        .shares = {{.calls = calls_run(seed / 2 % 3), .slowness = {.chance = seed % 2 == 0 ? 0U : 200U}}}};
}

TEST(server_on_simulated_loops, repeats_its_actions_with_the_same_seed) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(3)) {
        const testing_by_simulation::replayable here(seed);
        const outcome first = let_unruly_clients_live(seed, adversarial(seed));
        const outcome second = let_unruly_clients_live(seed, adversarial(seed));
        EXPECT_EQ(first.digest, second.digest);
        EXPECT_EQ(first.switches, second.switches);
        EXPECT_NE(let_unruly_clients_live(seed + 100, adversarial(seed + 100)).digest, first.digest);
        EXPECT_GT(first.switches, 100U) << "threads alternated";
        EXPECT_GT(first.successes, 10U) << "clients connected and succeeded";
    }
}

TEST(server_on_simulated_loops, is_empty_after_clients_that_end_everything_in_random_order) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(20)) {
        const testing_by_simulation::replayable here(seed);
        (void)let_unruly_clients_live(seed, adversarial(seed));
        if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace sluice::smb_simulation
