#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "sluice/base/clock.hpp"

namespace sluice::vfs {

/// Decides from measurements whether the calls of a domain may run on a loop. On a busy host
/// threads are preempted, which does not depend on its disks. A slow call therefore only starts an
/// examination, which counts calls in which the thread has slept.
///
/// Monitor; wanted() is atomic. The caller measures and passes the times. Thread safety: any
/// thread. Allocates: nothing.
class inline_policy {
public:
    using duration = clock_source::duration;
    using time_point = clock_source::steady_time;

    static constexpr std::uint64_t calls_per_sample = 16;
    static constexpr duration slow_call = std::chrono::milliseconds(2);
    static constexpr unsigned samples_max = 16;      // after this number, counting starts again
    static constexpr unsigned slow_samples_max = 2;  // of them start an examination
    static constexpr unsigned examined_calls_max = 64;
    static constexpr unsigned sleeping_calls_max = 4;  // of them end inline calls
    static constexpr duration offloaded_at_least = std::chrono::seconds(300);
    static constexpr duration prompt_call = std::chrono::milliseconds(1);
    static constexpr unsigned prompt_calls_min = 100;  // in a row allow inline calls again

    enum class measure : std::uint8_t { nothing, time, sleep };

    /// Returns the measurement to make of the inline call with this number.
    [[nodiscard]] measure wanted(std::uint64_t number) const noexcept {
        if (is_examining_.load(std::memory_order_relaxed)) [[unlikely]]  // orders no other access
            return measure::sleep;
        return number % calls_per_sample == 0 ? measure::time : measure::nothing;
    }

    /// Records how long an inline call took, for measure::time.
    void record_time(duration took) noexcept;
    /// Records how long an inline call took and whether the thread slept, for measure::sleep.
    /// Returns whether calls must be offloaded from now on: the caller then calls
    /// record_offloaded_at().
    [[nodiscard]] bool record_examined(duration took, bool has_slept) noexcept;

    void record_offloaded_at(time_point now) noexcept;
    /// Records how long an offloaded call took. Returns whether calls may run inline again.
    [[nodiscard]] bool record_offloaded_call(duration took, time_point now) noexcept;

private:
    std::atomic<bool> is_examining_{false};

    std::mutex mutex_;  // guards all following members
    unsigned samples_ = 0;
    unsigned slow_samples_ = 0;
    unsigned examined_ = 0;
    unsigned sleeping_ = 0;
    time_point offloaded_at_{};
    unsigned prompt_calls_ = 0;
};

}  // namespace sluice::vfs
