#include "bench/harness/latency_histogram.hpp"

#include <algorithm>
#include <cmath>

namespace sluice::bench {

void latency_histogram::merge(const latency_histogram& other) noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i)
        counts_[i] += other.counts_[i];
    count_ += other.count_;
    max_ = std::max(max_, other.max_);
}

std::uint64_t latency_histogram::percentile(double fraction) const noexcept {
    const double wanted = std::ceil(fraction * static_cast<double>(count_));
    const auto rank =
        std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, std::max<std::uint64_t>(count_, 1));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        seen += counts_[i];
        if (seen >= rank) return std::min(bucket_end(i), max_);
    }
    return max_;  // nothing was recorded
}

bool latency_histogram::resolves(double fraction) const noexcept {
    // A little less than one, because 1 - 0.9999 is not quite 0.0001.
    return (1 - fraction) * static_cast<double>(count_) > 0.999;
}

}  // namespace sluice::bench
