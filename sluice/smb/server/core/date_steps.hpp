#pragma once

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/core/limits.hpp"

namespace sluice::smb::server {

/// Finds steps of the date, which an administrator or a time server may set at any moment. The
/// caller skips one pass after a step, so that a wrong date can be corrected.
/// Thread safety: one thread. Allocates: nothing. Blocks: never.
class date_steps {
public:
    /// The clock outlives it.
    explicit date_steps(const clock_source& clock) noexcept
        : clock_(clock), steady_(clock.steady_now()), utc_(clock.utc_now()) {}

    /// Returns whether the date has advanced much more than time has, since the last call.
    [[nodiscard]] bool have_advanced() noexcept {
        const clock_source::steady_time steady = clock_.steady_now();
        const clock_source::utc_time utc = clock_.utc_now();
        const clock_source::duration beyond = (utc - utc_) - (steady - steady_);
        steady_ = steady;
        utc_ = utc;
        return beyond > limits::date_step_max;
    }

private:
    const clock_source& clock_;
    clock_source::steady_time steady_;
    clock_source::utc_time utc_;
};

}  // namespace sluice::smb::server
