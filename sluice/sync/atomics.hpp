#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace sluice::sync {

/// How the locks of this library reach memory and sleep. They are templates over it, so that a test can put a
/// scheduler in its place that tries every order of their steps.
///
/// `wait` sleeps while `word` holds `expected`, until `until` (`time_point::max()`: without end), a wake or
/// no reason at all; whoever waits looks again. `wake_one` ends one wait for that address, `wake_all` every
/// one; its memory may be gone by then: waking touches the address only. Thread safety: any thread.
struct real_atomics {
    template <class T>
    using atomic = std::atomic<T>;
    using time_point = std::chrono::steady_clock::time_point;
    /// How often a loop looks before its thread sleeps.
    static constexpr int spins_max = 100;

    static void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, time_point until) noexcept;
    static void wake_one(std::atomic<std::uint32_t>& word) noexcept;
    static void wake_all(std::atomic<std::uint32_t>& word) noexcept;
    [[nodiscard]] static time_point now() noexcept { return std::chrono::steady_clock::now(); }
    /// Tells the processor that a loop only waits.
    static void relax() noexcept;
};

}  // namespace sluice::sync
