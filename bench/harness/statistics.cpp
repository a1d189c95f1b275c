#include "bench/harness/statistics.hpp"

#include <algorithm>
#include <vector>

#include "sluice/base/ensure.hpp"

namespace sluice::bench {

summary summarise(std::span<const double> values) {
    if (values.empty()) return {};
    std::vector<double> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end());
    const std::size_t middle = sorted.size() / 2;
    const double median = sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    return {.median = median, .min = sorted.front(), .max = sorted.back(), .n = sorted.size()};
}

double paired_ratio(std::span<const double> values, std::span<const double> base) {
    ENSURE(values.size() == base.size());
    std::vector<double> ratios(values.size());
    std::transform(values.begin(), values.end(), base.begin(), ratios.begin(),
                   [](double value, double floor) { return value / floor; });
    return summarise(ratios).median;
}

}  // namespace sluice::bench
