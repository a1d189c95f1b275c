#pragma once

#include <chrono>
#include <limits>

namespace sluice {

/// The deadline of an operation: none (the default), at once (zero: do not wait), after a duration,
/// or at a point in time of the steady or of the system clock.
///
/// A relative deadline begins when the operation starts, not when the deadline is constructed.
/// Always the last parameter. Thread safety: a value.
class deadline {
public:
    using duration = std::chrono::nanoseconds;
    using steady_clock = std::chrono::steady_clock;
    using system_clock = std::chrono::system_clock;

    enum class kind : unsigned char { none, relative, steady, utc };

    /// Waits indefinitely.
    constexpr deadline() noexcept = default;

    /// Ends after `within`, counted from the start of the operation; zero or less means do not
    /// wait.
    template <class Rep, class Period>
    constexpr deadline(std::chrono::duration<Rep, Period> within) noexcept  // NOLINT: converts
        : when_(within > std::chrono::duration<Rep, Period>::zero() ? clamped(within) : duration::zero()),
          kind_(kind::relative) {}
    constexpr deadline(steady_clock::time_point when) noexcept  // NOLINT: meant to convert
        : when_(when.time_since_epoch()), kind_(kind::steady) {}
    constexpr deadline(system_clock::time_point when) noexcept  // NOLINT: meant to convert
        : when_(when.time_since_epoch()), kind_(kind::utc) {}

    /// Fails rather than waits.
    [[nodiscard]] static constexpr deadline zero() noexcept { return {duration::zero()}; }

    [[nodiscard]] constexpr bool is_none() const noexcept { return kind_ == kind::none; }
    [[nodiscard]] constexpr bool is_zero() const noexcept {
        return kind_ == kind::relative and when_ == duration::zero();
    }
    [[nodiscard]] constexpr kind which() const noexcept { return kind_; }

    /// Returns the time left, given the current times of the two clocks: never negative;
    /// `duration::max()` for no deadline. `started` is when the operation began.
    [[nodiscard]] constexpr duration remaining(steady_clock::time_point started, steady_clock::time_point now,
                                               system_clock::time_point utc_now) const noexcept {
        switch (kind_) {
            case kind::none:
                return duration::max();
            case kind::relative:
                return positive(when_ - (now - started));
            case kind::steady:
                return positive(when_ - now.time_since_epoch());
            case kind::utc:
                return positive(when_ - utc_now.time_since_epoch());
        }
        return duration::zero();
    }

    /// Returns the steady time at which an operation started at `started` times out;
    /// time_point::max() for never. A UTC deadline is converted with the current clocks: a later
    /// step of the system clock has no effect.
    [[nodiscard]] constexpr steady_clock::time_point steady_end(
        steady_clock::time_point started, system_clock::time_point utc_now) const noexcept {
        const duration left = remaining(started, started, utc_now);
        const auto never = steady_clock::time_point::max();
        return left >= never - started ? never : started + left;
    }

private:
    // A duration too long for 64 bits of nanoseconds is equivalent to no deadline.
    template <class Rep, class Period>
    static constexpr duration clamped(std::chrono::duration<Rep, Period> within) noexcept {
        using seconds = std::chrono::duration<long double>;
        return seconds(within) >= seconds(duration::max()) ? duration::max()
                                                           : std::chrono::duration_cast<duration>(within);
    }
    static constexpr duration positive(duration d) noexcept {
        return d > duration::zero() ? d : duration::zero();
    }

    duration when_{};
    kind kind_ = kind::none;
};

}  // namespace sluice
