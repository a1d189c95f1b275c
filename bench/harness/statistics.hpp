#pragma once

#include <cstddef>
#include <span>

namespace sluice::bench {

/// The median of the repeats and their range. Minimum and maximum rather than a deviation: the
/// repeats of a benchmark are few, and disturbed in one direction only.
struct summary {
    double median = 0;
    double min = 0;
    double max = 0;
    std::size_t n = 0;
};

/// Returns the summary of `values`: all zero if there are none. Allocates: a copy of the values.
[[nodiscard]] summary summarise(std::span<const double> values);

/// Returns the median of values[i] / base[i]. Paired, because a disturbance that lasts longer than
/// one repeat then slows both sides and cancels out, while a ratio of two medians keeps it. The
/// spans have the same size.
[[nodiscard]] double paired_ratio(std::span<const double> values, std::span<const double> base);

}  // namespace sluice::bench
