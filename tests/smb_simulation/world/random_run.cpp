#include "tests/smb_simulation/world/random_run.hpp"

#include "sluice/io/task/awaitable.hpp"
#include "tests/smb_simulation/clients/busy_client.hpp"
#include "tests/smb_simulation/clients/nonconforming_client.hpp"
#include "tests/smb_simulation/world/cache_oracle.hpp"
#include "tests/smb_simulation/world/exclusion_oracle.hpp"
#include "tests/smb_simulation/world/loops_world.hpp"

namespace sluice::smb_simulation {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds stay_max = 20min;

// With a calm network, a socket accepts writes immediately.
[[nodiscard]] bool is_calm(std::uint64_t seed) {
    return seed % 3 == 0;
}

// In one of eight runs, some calls of the file system never return: its clients leave in the end.
[[nodiscard]] bool has_hung_calls(std::uint64_t seed) {
    return seed % 8 == 0;
}

// Draws networks that are calm, and networks in which everything is slow, short and late; each with
// a fast or slow volume, whose calls run on the loops, on workers, or on either.
[[nodiscard]] loops_world_options drawn(std::uint64_t seed) {
    loops_world_options how{.seed = seed, .network = io::simulation_options::adversarial(seed)};
    // Without delays, clients see replies in the order in which loops send them.
    const auto delay_max = seed % 6 == 0 ? 50us : 0us;
    if (is_calm(seed))
        how.network = {.seed = seed, .speculation = 1000, .delay_max = delay_max, .errors = {}};
    simulated_share& files = how.shares.front();
    files.calls = calls_run(seed / 2 % 3);
    if (seed % 2 == 0) files.slowness.chance = 200;
    if (has_hung_calls(seed)) files.slowness.hung = 20;
    return how;
}

// Reloads the configuration while clients are busy, as SIGHUP does.
io::task<void> reload_often(loops_world& simulated, std::uint64_t seed) {
    seeded_random random(seed);
    for (int i = 0; i != 30; ++i) {
        const deadline pause(std::chrono::microseconds(random.below(i % 10 == 0 ? 100'000 : 1000)));
        (void)co_await io::co_sleep(simulated.clients_loop(), pause);
        simulated.reload_shares(random.below(2) == 0);
    }
}

}  // namespace

run_outcome run_at_random(std::uint64_t seed, mutation fault) {
    exclusion_oracle exclusion;
    cache_oracle caches(is_calm(seed) ? break_order::strict : break_order::relaxed);
    exchanges seen({&exclusion, &caches}, fault);
    loops_world simulated(drawn(seed));
    std::vector<std::unique_ptr<busy_client>> busy;
    std::vector<std::unique_ptr<nonconforming_client>> unruly;
    simulated.run([&] {
        seeded_random random(seed);
        if (seed % 5 == 0) simulated.clients().spawn(reload_often(simulated, seed));
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
                                    .stays_at_most = has_hung_calls(seed) ? stay_max : 0s,
                                    .dial = [&simulated, number] { return simulated.connect(number); }}));
            simulated.clients().spawn(busy.back()->live());
        }
        if (random.below(3) != 0) return;
        unruly.push_back(std::make_unique<nonconforming_client>(
            simulated.clients_loop(), simulated.connect(9), simulated.clock(),
            nonconforming_client::habits{.seed = seed,
                                         .requests = static_cast<unsigned>(20 + random.below(60)),
                                         .stays_at_most = has_hung_calls(seed) ? stay_max : 0s}));
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
                    .offloaded_calls = simulated.offloaded_calls(),
                    .verdict = seen.verdict()};
    for (const auto& client : busy) {
        all.successes += client->successes();
        if (not client->problem().empty()) all.verdict += client->problem() + "\n";
    }
    for (const auto& client : unruly)
        if (not client->problem().empty()) all.verdict += client->problem() + "\n";
    return all;
}

}  // namespace sluice::smb_simulation
