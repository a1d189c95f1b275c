#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "sluice/base/clock.hpp"

namespace sluice::discovery {

/// Limits the rate of an action: `burst` at once, and then `per_second`.
/// Thread safety: none. Allocates: nothing.
class rate_budget {
public:
    using time = clock_source::steady_time;

    /// `per_second` is not 0.
    constexpr rate_budget(unsigned burst, unsigned per_second) noexcept
        : burst_(burst),
          left_(burst),
          interval_(std::chrono::nanoseconds(std::chrono::seconds(1)) / per_second) {}

    /// Returns whether the action may happen now.
    [[nodiscard]] bool has_any(time now) noexcept {
        if (now - since_ < interval_) return left_ != 0;
        const auto earned = static_cast<std::uint64_t>((now - since_) / interval_);
        left_ = static_cast<unsigned>(
            std::min<std::uint64_t>(burst_, left_ + std::min<std::uint64_t>(earned, burst_)));
        since_ = now;
        return left_ != 0;
    }
    /// Takes one action from the budget; returns false if it may not happen now.
    [[nodiscard]] bool take(time now) noexcept {
        if (not has_any(now)) return false;
        --left_;
        return true;
    }

private:
    unsigned burst_;
    unsigned left_;
    std::chrono::nanoseconds interval_;
    time since_{};
};

}  // namespace sluice::discovery
