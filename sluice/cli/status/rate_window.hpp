#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/report/traffic.hpp"

namespace sluice::cli {

/// What was done each second, lately.
struct traffic_rate {
    double seconds = 0;  // over which it was seen
    double requests = 0;
    double reads = 0;
    double writes = 0;
    double read_bytes = 0;
    double written_bytes = 0;
};

/// Remembers what had been done at the last few moments somebody looked, to tell how fast it goes.
/// Allocates: nothing. Thread safety: one thread.
class rate_window {
public:
    static constexpr std::size_t samples_max = 12;

    /// `now` never goes back; the oldest sample is forgotten.
    void add(clock_source::steady_time now, const smb::server::traffic& so_far) noexcept;

    /// From the sample nearest to that long before the last one, to that. Nothing with fewer than two.
    [[nodiscard]] std::optional<traffic_rate> over(std::chrono::seconds length) const noexcept;

private:
    struct sample {
        clock_source::steady_time at{};
        smb::server::traffic done;
    };
    // The i-th newest.
    [[nodiscard]] const sample& newest(std::size_t i) const noexcept {
        return samples_[(count_ - 1 - i) % samples_max];
    }

    std::array<sample, samples_max> samples_{};
    std::size_t count_ = 0;  // ever
};

}  // namespace sluice::cli
