#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "sluice/base/ensure.hpp"

namespace sluice {

/// A clock. Timers, deadlines and time stamps get it by dependency injection, so that a simulation
/// can replay an hour in a millisecond. Passed by reference to constructors; the user never owns
/// it. Allocates: nothing. Blocks: never. Thread safety: any thread.
class clock_source {
public:
    using duration = std::chrono::nanoseconds;
    using steady_time = std::chrono::time_point<std::chrono::steady_clock, duration>;
    using utc_time = std::chrono::time_point<std::chrono::system_clock, duration>;

    /// Returns a time that never goes back; its zero has no meaning. For timers and deadlines.
    [[nodiscard]] virtual steady_time steady_now() const noexcept = 0;
    /// Returns the date, which an administrator may set back at any moment. For time stamps.
    [[nodiscard]] virtual utc_time utc_now() const noexcept = 0;

    clock_source(const clock_source&) = delete;
    clock_source& operator=(const clock_source&) = delete;

protected:
    clock_source() noexcept = default;
    ~clock_source() = default;
};

/// The machine's clocks.
class system_clock_source final : public clock_source {
public:
    system_clock_source() noexcept = default;
    [[nodiscard]] steady_time steady_now() const noexcept override;
    [[nodiscard]] utc_time utc_now() const noexcept override;
};

/// Clocks that do not advance until the test or simulation that owns them advances them. Both begin
/// at fixed times other than zero, so that uninitialised times are noticed.
class simulated_clock final : public clock_source {
public:
    simulated_clock() noexcept = default;

    [[nodiscard]] steady_time steady_now() const noexcept override;
    [[nodiscard]] utc_time utc_now() const noexcept override;

    /// Advances both clocks. Never negative.
    void advance(duration elapsed) noexcept;
    /// Advances both clocks until the steady clock shows `when`; does nothing if that is now or
    /// past. For a simulation that jumps to its next timer; one thread only.
    void advance_to(steady_time when) noexcept;
    /// Sets the date, forward or back, without advancing the time.
    void step_utc(duration by) noexcept;

private:
    // relaxed throughout: a time orders nothing else. A thread that reads the date while another
    // steps it sees it before or after.
    std::atomic<std::int64_t> steady_ns_{1'000'000'000'000};
    std::atomic<std::int64_t> utc_minus_steady_ns_{1'800'000'000'000'000'000 - 1'000'000'000'000};
};

}  // namespace sluice
