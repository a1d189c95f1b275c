#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/report/traffic.hpp"

namespace sluice::cli {

/// The recent traffic per second.
struct traffic_rate {
    double seconds = 0;  // length of the interval
    double requests = 0;
    double reads = 0;
    double writes = 0;
    double read_bytes = 0;
    double written_bytes = 0;
};

/// The samples of the last few moments, to compute rates.
/// Allocates: nothing. Thread safety: one thread.
class rate_window {
public:
    static constexpr std::size_t samples_max = 12;

    /// Adds a sample and drops the oldest. `now` must not decrease.
    void add(clock_source::steady_time now, const smb::server::traffic& so_far) noexcept;

    /// Returns the rate between the last sample and the one nearest to `length` before it. Returns
    /// std::nullopt with fewer than two samples.
    [[nodiscard]] std::optional<traffic_rate> over(std::chrono::seconds length) const noexcept;

private:
    struct sample {
        clock_source::steady_time at{};
        smb::server::traffic done;
    };
    // Returns the i-th newest sample.
    [[nodiscard]] const sample& newest(std::size_t i) const noexcept {
        return samples_[(count_ - 1 - i) % samples_max];
    }

    std::array<sample, samples_max> samples_{};
    std::size_t count_ = 0;  // of all samples ever added
};

}  // namespace sluice::cli
