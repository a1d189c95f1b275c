#include "sluice/fat/engine/extent_pin_table.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {

// Relaxed: a later query is ordered after this call, because the clusters become free only after
// the pinning thread has unlocked the file's ranges.
void extent_pin_table::begin(cluster_extent what) noexcept {
    ENSURE(what.length != 0 and (what.first + what.length - 1) / group_clusters < counts_.size(),
           "pinned extents are clusters of the volume");
    for (std::uint32_t group = what.first / group_clusters;
         group <= (what.first + what.length - 1) / group_clusters; ++group) {
        counts_[group].fetch_add(one_pin, std::memory_order_relaxed);
        counts_[group].fetch_or(once, std::memory_order_relaxed);
    }
}

// Release: the reads of the pinned extents come before; pairs with the acquire of a query.
void extent_pin_table::end(cluster_extent what) noexcept {
    for (std::uint32_t group = what.first / group_clusters;
         group <= (what.first + what.length - 1) / group_clusters; ++group) {
        const std::uint32_t before = counts_[group].fetch_sub(one_pin, std::memory_order_release);
        ENSURE(before >= one_pin + once, "a pin is released once");
    }
}

bool extent_pin_table::any_count_from(std::uint32_t least, cluster_extent what) const noexcept {
    ENSURE(what.length != 0 and (what.first + what.length - 1) / group_clusters < counts_.size(),
           "the extent contains clusters of the volume");
    const auto first = counts_.begin() + what.first / group_clusters;
    const auto last = counts_.begin() + (what.first + what.length - 1) / group_clusters;
    return std::any_of(first, last + 1,
                       [&](const auto& count) { return count.load(std::memory_order_acquire) >= least; });
}

bool extent_pin_table::is_pinned(cluster_extent what) const noexcept {
    return any_count_from(one_pin, what);
}

bool extent_pin_table::was_pinned(cluster_extent what) const noexcept {
    return any_count_from(once, what);
}

extent_pin::~extent_pin() {
    for (const cluster_extent& each : pinned_)
        table_->end(each);
}

void extent_pin::add(cluster_extent what) {
    table_->begin(what);
    pinned_.push_back(what);
}

}  // namespace sluice::fat
