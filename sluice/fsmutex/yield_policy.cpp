#include "sluice/fsmutex/yield_policy.hpp"

#include <sched.h>

#include <algorithm>

namespace sluice::fsmutex {

bool yield_policy::is_due() noexcept {
    const std::uint32_t resting = resting_.load(std::memory_order_relaxed);
    if (resting == 0) return true;
    resting_.store(resting - 1, std::memory_order_relaxed);
    return false;
}

void yield_policy::took(std::chrono::nanoseconds away) noexcept {
    const std::uint32_t before = rest_.load(std::memory_order_relaxed);
    if (away <= away_max) {
        if (before != 0) rest_.store(before / 2, std::memory_order_relaxed);
        return;
    }
    const std::uint32_t rest = std::clamp(before * 2, rest_min, rest_max);
    rest_.store(rest, std::memory_order_relaxed);
    resting_.store(rest, std::memory_order_relaxed);
}

bool yield_policy::yield(const clock_source& clock, clock_source::steady_time end) noexcept {
    if (not is_due()) return false;
    const auto before = clock.steady_now();
    if (end - before < time_min) return false;
    ::sched_yield();
    took(clock.steady_now() - before);
    return true;
}

}  // namespace sluice::fsmutex
