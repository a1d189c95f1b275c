#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "sluice/base/clock.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. Decides whether a waiter yields its CPU once before it sleeps.
///
/// If the earlier requests are ready to run, they have had their turns when the waiter runs again,
/// and no process had to sleep and be woken, which costs twice as much. If another process computes
/// on that CPU, the waiter runs again a time slice later. Then the next waits do not yield, and
/// ever more of them while that continues. Thread safety: any thread; threads that race yield at
/// most once more or less.
class yield_policy {
public:
    [[nodiscard]] bool is_due() noexcept;
    void took(std::chrono::nanoseconds away) noexcept;

    /// Yields if that is due and leaves time until `end`. Returns whether it did. Blocks: while
    /// other processes run.
    bool yield(const clock_source& clock, clock_source::steady_time end) noexcept;

    /// Lets the other request run before the next one, for a thread that had an earlier request on
    /// its CPU. Yields again as long as `one_is_there()`, at most rounds_max times more. Blocks: as
    /// yield().
    template <class OneIsThere>
    void yield_to_requesters(const clock_source& clock, OneIsThere&& one_is_there) noexcept {
        ::sched_yield();
        for (int round = 0;
             round != rounds_max and one_is_there() and yield(clock, clock_source::steady_time::max());
             ++round) {}
    }
    static constexpr int rounds_max = 8;

    /// Longer than a wake-up of an idle CPU, shorter than a time slice.
    static constexpr std::chrono::nanoseconds away_max = std::chrono::microseconds(500);
    /// A nearer deadline leaves no time for others: each of them may take a slice of milliseconds.
    static constexpr std::chrono::nanoseconds time_min = std::chrono::milliseconds(100);
    static constexpr std::uint32_t rest_min = 64;
    static constexpr std::uint32_t rest_max = 4096;

private:
    // relaxed throughout: they are hints without an order.
    std::atomic<std::uint32_t> resting_ = 0;  // waits until the next one
    std::atomic<std::uint32_t> rest_ = 0;     // what the last slow one cost
};

}  // namespace sluice::fsmutex
