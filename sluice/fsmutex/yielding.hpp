#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "sluice/base/clock.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. Whether a waiter does well to let others have its processor once before it sleeps.
///
/// If those who come before it are ready to run they have had their turns when it comes back, and nobody had
/// to be put to sleep and woken, which costs twice as much. If somebody computes there it comes back a time
/// slice later: then it is not worth it for the next waits, and ever more of them while that goes on.
/// Thread safety: any thread; threads that race at most yield once more or less.
class yielding {
public:
    [[nodiscard]] bool is_due() noexcept;
    void took(std::chrono::nanoseconds away) noexcept;

    /// Yields if that is due and leaves time until `end`; whether it did. Blocks: for what others make of it.
    bool yield(const clock_source& clock, clock_source::steady_time end) noexcept;

    /// For who stood behind another of its processor: before it asks again it lets that one run, and others
    /// as long as `one_is_there()`, rounds_max times more at most. Blocks: as yield().
    template <class OneIsThere>
    void let_others_ask(const clock_source& clock, OneIsThere&& one_is_there) noexcept {
        ::sched_yield();
        for (int round = 0;
             round != rounds_max and one_is_there() and yield(clock, clock_source::steady_time::max());
             ++round) {}
    }
    static constexpr int rounds_max = 8;

    /// Longer than a wake-up of an idle processor, shorter than a time slice.
    static constexpr std::chrono::nanoseconds away_max = std::chrono::microseconds(500);
    /// A deadline nearer than that leaves no time for others: each of them may take a slice of milliseconds.
    static constexpr std::chrono::nanoseconds time_min = std::chrono::milliseconds(100);
    static constexpr std::uint32_t rest_min = 64;
    static constexpr std::uint32_t rest_max = 4096;

private:
    // relaxed throughout: they are hints, and order nothing.
    std::atomic<std::uint32_t> resting_ = 0;  // waits until the next one
    std::atomic<std::uint32_t> rest_ = 0;     // what the last slow one cost
};

}  // namespace sluice::fsmutex
