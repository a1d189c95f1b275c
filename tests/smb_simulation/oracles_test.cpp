#include <gtest/gtest.h>

#include "tests/simulation.hpp"
#include "tests/smb_simulation/world/random_run.hpp"

// Random runs of clients of a server on several loops satisfy each oracle, and each oracle detects
// a faulty server.

namespace sluice::smb_simulation {
namespace {

constexpr std::size_t seeds_of_test = 80;

// Returns whether an oracle reports the fault in one of the first runs. The fault is injected into
// its input.
[[nodiscard]] bool is_reported(mutation fault, std::string_view what) {
    for (std::uint64_t seed = 1; seed <= seeds_of_test; ++seed)
        if (run_at_random(seed, fault).verdict.find(what) != std::string::npos) return true;
    return false;
}

TEST(server_on_simulated_loops, satisfies_all_oracles_with_clients_of_several_channels) {
    run_outcome all;
    for (const std::uint64_t seed : testing_by_simulation::seeds(seeds_of_test)) {
        const testing_by_simulation::replayable here(seed);
        const run_outcome one = run_at_random(seed);
        EXPECT_EQ(one.verdict, "");
        all.successes += one.successes;
        all.open_pairs += one.open_pairs;
        all.lock_pairs += one.lock_pairs;
        all.comparisons += one.comparisons;
        all.breaks += one.breaks;
        all.offloaded_calls += one.offloaded_calls;
        if (testing::Test::HasFailure()) return;
    }
    if (testing_by_simulation::seed_to_replay()) return;
    EXPECT_GT(all.successes, 2000U);
    EXPECT_GT(all.open_pairs, 200U) << "opens existed at the same time";
    EXPECT_GT(all.lock_pairs, 5U) << "locks overlapped";
    EXPECT_GT(all.comparisons, 20U) << "values were cached";
    EXPECT_GT(all.breaks, 20U);
    EXPECT_GT(all.offloaded_calls, 2000U) << "workers carried out calls";
}

TEST(server_on_simulated_loops, repeats_runs_of_busy_clients_with_the_same_seed) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(4))
        EXPECT_EQ(run_at_random(seed).digest, run_at_random(seed).digest) << seed;
}

TEST(exclusion_oracle, reports_opens_that_exclude_each_other) {
    EXPECT_TRUE(is_reported(mutation::opens_share_nothing, "exclude each other"));
}

TEST(exclusion_oracle, reports_exclusive_locks_that_overlap) {
    EXPECT_TRUE(is_reported(mutation::locks_are_exclusive, "overlap"));
}

TEST(cache_oracle, reports_a_reply_before_the_break_it_depends_on) {
    EXPECT_TRUE(is_reported(mutation::breaks_get_lost, "may cache"));
}

TEST(cache_oracle, reports_data_that_was_never_written) {
    EXPECT_TRUE(is_reported(mutation::reads_are_old, "never written"));
}

TEST(exchanges, reports_a_request_without_a_reply) {
    EXPECT_TRUE(is_reported(mutation::reply_gets_lost, "no final reply"));
}

TEST(exchanges, reports_a_second_reply_to_a_request) {
    EXPECT_TRUE(is_reported(mutation::reply_is_repeated, "second final reply"));
}

}  // namespace
}  // namespace sluice::smb_simulation
