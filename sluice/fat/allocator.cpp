#include "sluice/fat/allocator.hpp"

#include <algorithm>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {

void reservation::give_back() noexcept {
    const std::scoped_lock guard(from_.mutex_);
    from_.give_back(*this);
}

void allocator::give_back(reservation& which) noexcept {
    if (which.held_.length == 0) return;
    map_.give(which.held_);
    reserved_ -= which.held_.length;
    which.held_ = {};
    reservations_.erase(&which);
}

// Takes the first `wanted` of a free row.
std::uint32_t allocator::take_row(cluster_extent row, std::uint32_t wanted,
                                  std::vector<cluster_extent>& taken) {
    const cluster_extent used{.first = row.first, .length = std::min(row.length, wanted)};
    map_.take(used);
    if (not taken.empty() and taken.back().first + taken.back().length == used.first) {
        taken.back().length += used.length;
    } else {
        taken.push_back(used);
    }
    next_ = used.first + used.length;
    return used.length;
}

result<void> allocator::allocate(const allocation_request& wanted, reservation& own,
                                 std::vector<cluster_extent>& taken) {
    ENSURE(wanted.wanted != 0);
    const std::scoped_lock guard(mutex_);
    const cluster_extent held = own.held_;
    if (map_.free_count() + held.length < wanted.wanted)
        while (not reservations_.empty())
            give_back(**reservations_.begin());
    give_back(own);
    if (map_.free_count() < wanted.wanted) {
        const bool has_hope = map_.free_count() + released_count_ >= wanted.wanted;
        return failure({has_hope ? EAGAIN : ENOSPC, "allocate clusters"});
    }
    std::uint32_t left = wanted.wanted;
    // On behind the file's end, as far as it goes: what was reserved lies there.
    if (wanted.goal != 0) {
        const std::uint32_t behind = map_.free_from(wanted.goal, left);
        if (behind != 0) left -= take_row({.first = wanted.goal, .length = behind}, left, taken);
    }
    const bool goes_on = left == 0;
    const std::uint32_t ahead = std::min(wanted.ahead, map_.free_count() / 8);
    while (left != 0) {
        const auto row = map_.find_run(next_, left + ahead);
        ENSURE(row.has_value(), "counted before");
        left -= take_row(*row, left, taken);
    }
    // The rest of the old reservation, or of the new row.
    const std::uint32_t end = taken.back().first + taken.back().length;
    const bool is_in_old = goes_on and end >= held.first and end - held.first < held.length;
    const std::uint32_t most = is_in_old ? held.length - (end - held.first) : ahead;
    own.held_ = {.first = end, .length = map_.free_from(end, most)};
    if (own.held_.length != 0) {
        map_.take(own.held_);
        reserved_ += own.held_.length;
        reservations_.insert(&own);
        next_ = own.held_.first + own.held_.length;
    }
    return {};
}

void allocator::undo(const std::vector<cluster_extent>& taken) noexcept {
    const std::scoped_lock guard(mutex_);
    for (const cluster_extent& each : taken)
        map_.give(each);
}

void allocator::release(cluster_extent what) {
    const std::scoped_lock guard(mutex_);
    released_.push_back(what);
    released_count_ += what.length;
}

std::vector<cluster_extent> allocator::take_released() {
    const std::scoped_lock guard(mutex_);
    return std::exchange(released_, {});
}

void allocator::reuse(const std::vector<cluster_extent>& freed, std::uint32_t asked) noexcept {
    const std::scoped_lock guard(mutex_);
    for (const cluster_extent& each : freed)
        map_.give(each);
    ENSURE(asked <= released_count_);
    released_count_ -= asked;
}

std::uint32_t allocator::free_count() noexcept {
    const std::scoped_lock guard(mutex_);
    // Of a damaged volume, a cluster may have been released twice.
    return std::min(map_.count(), map_.free_count() + reserved_ + released_count_);
}

std::uint32_t allocator::next() noexcept {
    const std::scoped_lock guard(mutex_);
    return next_;
}

}  // namespace sluice::fat
