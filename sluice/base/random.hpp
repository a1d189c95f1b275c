#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

/// A source of random numbers. Users get it by dependency injection, so that a simulation can
/// repeat a run from its seed. Passed by reference to constructors; the user never owns it. Numbers
/// that an attacker must not guess (keys, challenges, session ids) come from a
/// `secret_random_source`; require that type where it matters. Errors: none; a source that cannot
/// deliver stops the program. Allocates: nothing.
class random_source {
public:
    /// Fills `bytes` with independent, uniformly distributed ones.
    virtual void fill(std::span<std::byte> bytes) noexcept = 0;
    [[nodiscard]] virtual std::uint64_t next_u64() noexcept = 0;

    /// Returns a number less than `bound`, each equally likely. `bound` is not zero. Complexity:
    /// less than two numbers expected, whatever the bound.
    [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;

    random_source(const random_source&) = delete;
    random_source& operator=(const random_source&) = delete;

protected:
    random_source() noexcept = default;
    ~random_source() = default;
};

/// A source of unpredictable numbers. A separate type, so that a seeded source cannot be used where
/// a secret is generated.
class secret_random_source : public random_source {
protected:
    secret_random_source() noexcept = default;
    ~secret_random_source() = default;
};

/// The kernel's generator. Thread safety: any thread. Blocks: only early after boot, until the
/// kernel has gathered its first entropy; the alternative would be guessable secrets.
class system_random final : public secret_random_source {
public:
    system_random() noexcept = default;
    void fill(std::span<std::byte> bytes) noexcept override;
    [[nodiscard]] std::uint64_t next_u64() noexcept override;
};

/// A generator of the same numbers for the same seed, on every machine and in every release:
/// xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators"), its state
/// filled by splitmix64, as they recommend. Never for secrets: a few outputs reveal the state.
/// Thread safety: none.
class seeded_random final : public random_source {
public:
    using state = std::array<std::uint64_t, 4>;

    explicit seeded_random(std::uint64_t seed) noexcept;
    /// Uses a complete state, which is not all zero (that one never leaves zero).
    explicit seeded_random(const state& words) noexcept;

    void fill(std::span<std::byte> bytes) noexcept override;
    [[nodiscard]] std::uint64_t next_u64() noexcept override;

private:
    state words_;
};

/// Predictable "secrets", so that a simulation of the whole server is repeatable. No program that
/// listens on a network uses it. Thread safety: none.
class predictable_secrets_for_simulation final : public secret_random_source {
public:
    explicit predictable_secrets_for_simulation(std::uint64_t seed) noexcept : numbers_(seed) {}
    void fill(std::span<std::byte> bytes) noexcept override;
    [[nodiscard]] std::uint64_t next_u64() noexcept override;

private:
    seeded_random numbers_;
};

}  // namespace sluice
