#pragma once

#include <cstdint>
#include <string>

#include "tests/smb_simulation/world/exchanges.hpp"

namespace sluice::smb_simulation {

/// The outcome of one run of busy and unruly clients on several loops.
struct run_outcome {
    std::uint64_t digest = 0;
    std::uint64_t switches = 0;
    std::uint64_t events = 0;
    std::uint64_t replies = 0;
    unsigned successes = 0;
    std::size_t open_pairs = 0;
    std::size_t lock_pairs = 0;
    std::size_t comparisons = 0;
    std::size_t breaks = 0;
    std::size_t early_breaks = 0;
    std::uint64_t offloaded_calls = 0;
    std::string verdict;  // empty: no errors were found
};

/// Runs a server on three loops, and clients of one to three channels, all drawn from the seed.
/// Checks the server by expectations of gtest, and returns the findings of the oracles. Blocks: for
/// some tens of milliseconds.
[[nodiscard]] run_outcome run_at_random(std::uint64_t seed, mutation fault = mutation::none);

}  // namespace sluice::smb_simulation
