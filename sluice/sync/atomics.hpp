#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace sluice::sync {

/// When a range lock spreads itself over buckets, and when it stops: see range_lock.hpp.
struct range_lock_tuning {
    /// So many requests were granted beside what others hold: then buckets are made.
    static constexpr std::uint32_t heat_max = 64;
    static constexpr unsigned buckets_log2_first = 7;
    static constexpr unsigned buckets_log2_max = 16;
    /// So many requests found their bucket full: then there are four times as many.
    static constexpr std::uint32_t crowding_max = 16;
    /// How often a range leaves a bucket until that is noted, at most 256, a power of two; and after how many
    /// such notes somebody looks whether buckets are of use.
    static constexpr std::uint32_t leaves_per_note = 256;
    static constexpr std::uint32_t notes_per_look = 64;
    /// So many looks in a row find one thread alone: then the buckets are laid aside.
    static constexpr std::uint32_t lonely_looks_max = 8;
    /// Between two looks, so many wide ranges make them too dear.
    static constexpr std::uint32_t wide_per_look_max = 64;
    /// How deep completions nest on one thread; see completions.hpp.
    static constexpr std::uint32_t nesting_max = 8;
};

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
    using tuning = range_lock_tuning;
    /// How often a loop looks before its thread sleeps, or backs off for longer than a moment: first it goes
    /// on at once, then it lets other threads run.
    static constexpr unsigned spins_max = 48;

    static void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, time_point until) noexcept;
    static void wake_one(std::atomic<std::uint32_t>& word) noexcept;
    static void wake_all(std::atomic<std::uint32_t>& word) noexcept;
    [[nodiscard]] static time_point now() noexcept { return std::chrono::steady_clock::now(); }
    /// An object that each thread has of its own, value-initialised.
    template <class T>
    [[nodiscard]] static T& per_thread() noexcept {
        static thread_local constinit T its_own{};
        return its_own;
    }
    /// One round, from 0 on, of waiting for something that takes a few dozen instructions: relaxes, then lets
    /// other threads run, and from `spins_max` on sleeps for some microseconds, so that a thread of higher
    /// priority does not keep out the one it waits for.
    static void back_off(unsigned round) noexcept;
};

}  // namespace sluice::sync
