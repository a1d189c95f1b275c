#include "tests/smb_simulation/random_run.hpp"

#include "tests/smb_simulation/busy_client.hpp"
#include "tests/smb_simulation/cache_oracle.hpp"
#include "tests/smb_simulation/exclusion_oracle.hpp"
#include "tests/smb_simulation/loops_world.hpp"
#include "tests/smb_simulation/unruly_client.hpp"

namespace sluice::smb_simulation {

namespace {

using namespace std::chrono_literals;

// With a calm network, a socket accepts writes immediately.
[[nodiscard]] bool is_calm(std::uint64_t seed) {
    return seed % 3 == 0;
}

// Draws networks that are calm, and networks in which everything is slow, short and late; each with
// a fast or slow volume.
[[nodiscard]] loops_world_options drawn(std::uint64_t seed) {
    loops_world_options how{.seed = seed, .network = io::simulation_options::adversarial(seed)};
    // Without delays, clients see replies in the order in which loops send them.
    const auto delay_max = seed % 6 == 0 ? 50us : 0us;
    if (is_calm(seed))
        how.network = {.seed = seed, .speculation = 1000, .delay_max = delay_max, .errors = {}};
    if (seed % 2 == 0) how.slowness.chance = 200;
    if (seed % 8 == 0) how.slowness.hung = 20;
    return how;
}

}  // namespace

run_outcome run_at_random(std::uint64_t seed, mutation fault) {
    exclusion_oracle exclusion;
    cache_oracle caches(is_calm(seed) ? break_order::strict : break_order::relaxed);
    exchanges seen({&exclusion, &caches}, fault);
    loops_world simulated(drawn(seed));
    std::vector<std::unique_ptr<busy_client>> busy;
    std::vector<std::unique_ptr<unruly_client>> unruly;
    simulated.run([&] {
        seeded_random random(seed);
        const std::uint64_t count = 2 + random.below(3);
        for (std::uint64_t i = 0; i != count; ++i) {
            const auto number = static_cast<std::uint16_t>(i + 1);
            busy.push_back(std::make_unique<busy_client>(
                simulated.clients_loop(), simulated.clock(), seen,
                busy_client::habits{.seed = seed * 64 + i,
                                    .number = number,
                                    .channels = 1 + random.below(3),
                                    .requests = static_cast<unsigned>(20 + random.below(60)),
                                    .is_polite = random.below(3) != 0,
                                    .dial = [&simulated, number] { return simulated.connect(number); }}));
            simulated.clients().spawn(busy.back()->live());
        }
        if (random.below(3) != 0) return;
        unruly.push_back(std::make_unique<unruly_client>(
            simulated.clients_loop(), simulated.connect(9), simulated.clock(),
            unruly_client::habits{.seed = seed, .requests = static_cast<unsigned>(20 + random.below(60))}));
        simulated.clients().spawn(unruly.back()->live());
    });
    run_outcome all{.digest = simulated.digest(),
                    .switches = simulated.scheduler().switches(),
                    .events = simulated.events(),
                    .replies = seen.replies(),
                    .open_pairs = exclusion.pairs(),
                    .lock_pairs = exclusion.lock_pairs(),
                    .comparisons = caches.comparisons(),
                    .breaks = caches.breaks(),
                    .early_breaks = caches.early_breaks(),
                    .verdict = seen.verdict()};
    for (const auto& client : busy) {
        all.successes += client->successes();
        if (not client->complaint().empty()) all.verdict += client->complaint() + "\n";
    }
    for (const auto& client : unruly)
        if (not client->complaint().empty()) all.verdict += client->complaint() + "\n";
    return all;
}

}  // namespace sluice::smb_simulation
