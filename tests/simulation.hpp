#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The common part of all tests that run from a seed; docs/guide/simulation.md has an example.

namespace sluice::testing_by_simulation {

/// Returns the seed in the environment variable `SLUICE_SEED`, which replays a failure.
[[nodiscard]] inline std::optional<std::uint64_t> seed_to_replay() {
    const char* const given = std::getenv("SLUICE_SEED");
    if (given == nullptr) return {};
    std::uint64_t seed = 0;
    const std::string_view digits(given);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), seed).ec != std::errc{}) return {};
    return seed;
}

/// Returns the seeds to run: the first few, so that failures are reproducible, or only the one to
/// replay.
[[nodiscard]] inline std::vector<std::uint64_t> seeds(std::size_t count) {
    if (const auto given = seed_to_replay()) return {*given};
    std::vector<std::uint64_t> first;
    for (std::uint64_t seed = 1; seed <= count; ++seed)
        first.push_back(seed);
    return first;
}

/// Returns the command that runs the current test with only this seed.
[[nodiscard]] inline std::string how_to_replay(std::uint64_t seed) {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::string name =
        test != nullptr ? std::string(test->test_suite_name()) + "." + test->name() : "*";
    return "seed " + std::to_string(seed) + "; replay with: SLUICE_SEED=" + std::to_string(seed) + " " +
           program_invocation_name + " --gtest_filter='" + name + "'";
}

/// An object in the scope that runs one seed: if an expectation fails there, it prints how to
/// replay it.
class replayable {
public:
    explicit replayable(std::uint64_t seed) : seed_(seed), had_failed_(::testing::Test::HasFailure()) {}
    replayable(const replayable&) = delete;
    replayable& operator=(const replayable&) = delete;
    ~replayable() {
        if (not had_failed_ and ::testing::Test::HasFailure()) std::cerr << how_to_replay(seed_) << '\n';
    }

private:
    std::uint64_t seed_;
    bool had_failed_;
};

}  // namespace sluice::testing_by_simulation
