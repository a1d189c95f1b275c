#include "sluice/base/clock.hpp"

namespace sluice {

clock_source::steady_time system_clock_source::steady_now() const noexcept {
    return std::chrono::steady_clock::now();
}

clock_source::utc_time system_clock_source::utc_now() const noexcept {
    return std::chrono::system_clock::now();
}

clock_source::steady_time simulated_clock::steady_now() const noexcept {
    return steady_time(duration(steady_ns_.load(std::memory_order_relaxed)));
}

clock_source::utc_time simulated_clock::utc_now() const noexcept {
    return utc_time(duration(steady_ns_.load(std::memory_order_relaxed) +
                             utc_minus_steady_ns_.load(std::memory_order_relaxed)));
}

void simulated_clock::advance(duration elapsed) noexcept {
    ENSURE(elapsed >= duration::zero(), "a steady clock does not go back");
    steady_ns_.fetch_add(elapsed.count(), std::memory_order_relaxed);
}

void simulated_clock::advance_to(steady_time when) noexcept {
    const steady_time now = steady_now();
    if (when > now) advance(when - now);
}

void simulated_clock::step_utc(duration by) noexcept {
    utc_minus_steady_ns_.fetch_add(by.count(), std::memory_order_relaxed);
}

}  // namespace sluice
