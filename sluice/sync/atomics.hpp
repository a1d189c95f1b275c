#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace sluice::sync {

/// The thresholds at which a range lock spreads over buckets, and stops: see range_lock.hpp.
struct range_lock_tuning {
    /// After this number of grants next to other holders, buckets are created.
    static constexpr std::uint32_t contention_max = 64;
    static constexpr unsigned buckets_log2_first = 7;
    static constexpr unsigned buckets_log2_max = 16;
    /// After this number of requests that found their bucket full, there are four times as many
    /// buckets.
    static constexpr std::uint32_t full_bucket_requests_max = 16;
    /// A thread notes that ranges left a bucket once per this number, a power of two and at most
    /// 256. After a number of such notes, a thread checks whether buckets are still useful.
    static constexpr std::uint32_t leaves_per_note = 256;
    static constexpr std::uint32_t notes_per_check = 64;
    /// After this number of consecutive checks with one thread alone, the buckets are set aside.
    static constexpr std::uint32_t single_thread_checks_max = 8;
    /// More wide ranges than this between two checks make the buckets too expensive.
    static constexpr std::uint32_t wide_per_check_max = 64;
    /// The depth to which completions nest on one thread; see completions.hpp.
    static constexpr std::uint32_t nesting_max = 8;
};

/// How the locks of this library access memory and sleep. They are templates over it, so that a
/// test can replace it by a scheduler that tries every order of their steps.
///
/// `wait` sleeps while `word` holds `expected`, until `until` (`time_point::max()`: without end), a
/// wake-up or a spurious return; a waiter checks again. `wake_one` ends one wait for that address,
/// `wake_all` every one. The memory may be freed by then: waking only uses the address. Thread
/// safety: any thread.
struct real_atomics {
    template <class T>
    using atomic = std::atomic<T>;
    using time_point = std::chrono::steady_clock::time_point;
    using tuning = range_lock_tuning;
    /// How often a loop polls before its thread sleeps or backs off for longer: first it retries at
    /// once, then it lets other threads run.
    static constexpr unsigned spins_max = 48;

    static void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, time_point until) noexcept;
    static void wake_one(std::atomic<std::uint32_t>& word) noexcept;
    static void wake_all(std::atomic<std::uint32_t>& word) noexcept;
    [[nodiscard]] static time_point now() noexcept { return std::chrono::steady_clock::now(); }
    /// Returns an object of this thread, value-initialised.
    template <class T>
    [[nodiscard]] static T& per_thread() noexcept {
        static thread_local constinit T its_own{};
        return its_own;
    }
    /// One round, from 0 on, of waiting for something that takes a few dozen instructions. It
    /// relaxes, then lets other threads run, and from `spins_max` on sleeps for some microseconds,
    /// so that a thread of higher priority does not keep out the one it waits for.
    static void back_off(unsigned round) noexcept;
};

}  // namespace sluice::sync
