#include "sluice/fat/engine/allocator.hpp"

#include <algorithm>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::fat {
namespace {

void append(std::vector<cluster_extent>& taken, cluster_extent what) {
    ENSURE(what.length != 0, "an extent is not empty");
    if (not taken.empty() and taken.back().first + taken.back().length == what.first) {
        taken.back().length += what.length;
    } else {
        taken.push_back(what);
    }
}

}  // namespace

void reservation::release() noexcept {
    const std::scoped_lock guard(from_.mutex_);
    from_.release(*this);
}

void allocator::release(reservation& which) noexcept {
    if (which.held_.length == 0) return;
    ENSURE(reserved_ >= which.held_.length, "reserved clusters are counted");
    map_.give(which.held_);
    reserved_ -= which.held_.length;
    // No cluster after it has been allocated since, so the next file may begin here.
    if (next_ == which.held_.first + which.held_.length) next_ = which.held_.first;
    which.held_ = {};
    const std::size_t listed = reservations_.erase(&which);
    ENSURE(listed == 1, "a reservation that holds something is listed");
}

// Allocates from the front of the reservation if it continues the file; its bits are already taken.
bool allocator::take_reserved(const allocation_request& wanted, reservation& own,
                              std::vector<cluster_extent>& taken) {
    cluster_extent& held = own.held_;
    if (held.length < wanted.wanted or held.first != wanted.goal) return false;
    ENSURE(reserved_ >= held.length, "reserved clusters are counted");
    append(taken, {.first = held.first, .length = wanted.wanted});
    held.first += wanted.wanted;
    held.length -= wanted.wanted;
    reserved_ -= wanted.wanted;
    if (held.length == 0) reservations_.erase(&own);
    return true;
}

// Takes the first `wanted` clusters of a free run.
std::uint32_t allocator::take_row(cluster_extent row, std::uint32_t wanted,
                                  std::vector<cluster_extent>& taken) {
    ENSURE(row.length != 0 and wanted != 0);
    const cluster_extent used{.first = row.first, .length = std::min(row.length, wanted)};
    map_.take(used);
    append(taken, used);
    next_ = used.first + used.length;
    return used.length;
}

result<void> allocator::allocate(const allocation_request& wanted, reservation& own,
                                 std::vector<cluster_extent>& taken) {
    ENSURE(wanted.wanted != 0);
    ENSURE(&own.from_ == this, "a reservation is used with its own allocator");
    const std::scoped_lock guard(mutex_);
    if (take_reserved(wanted, own, taken)) return {};
    if (map_.free_count() + own.held_.length < wanted.wanted)
        while (not reservations_.empty())
            release(**reservations_.begin());
    release(own);
    if (map_.free_count() < wanted.wanted) {
        const bool can_succeed_later = map_.free_count() + released_count_ >= wanted.wanted;
        return failure({can_succeed_later ? EAGAIN : ENOSPC, "allocate clusters"});
    }
    std::uint32_t left = wanted.wanted;
    // Continue after the end of the file as far as possible: the released reservation is there.
    if (wanted.goal != 0) {
        const std::uint32_t end = map_.free_from(wanted.goal, left);
        if (end != 0) left -= take_row({.first = wanted.goal, .length = end}, left, taken);
    }
    const std::uint32_t ahead = std::min(wanted.ahead, map_.free_count() / 8);
    while (left != 0) {
        const auto row = map_.find_run(next_, left + ahead);
        ENSURE(row.has_value(), "the free clusters were counted");
        left -= take_row(*row, left, taken);
    }
    const std::uint32_t end = taken.back().first + taken.back().length;
    own.held_ = {.first = end, .length = map_.free_from(end, ahead)};
    if (own.held_.length != 0) {
        map_.take(own.held_);
        reserved_ += own.held_.length;
        reservations_.insert(&own);
        next_ = own.held_.first + own.held_.length;
    }
    ENSURE(reserved_ <= map_.count() - map_.free_count(), "reserved clusters are taken");
    return {};
}

void allocator::undo(const std::vector<cluster_extent>& taken) noexcept {
    const std::scoped_lock guard(mutex_);
    for (const cluster_extent& each : taken)
        map_.free_if_allocated(each);
    ENSURE(reserved_ <= map_.count() - map_.free_count(), "reserved clusters are not free");
}

void allocator::release(cluster_extent what) {
    const std::scoped_lock guard(mutex_);
    ENSURE(what.first >= map_.first() and what.first - map_.first() < map_.count() and
               what.length <= map_.count() - (what.first - map_.first()),
           "clusters of the volume are released");
    append(released_, what);
    released_count_ += what.length;
}

std::vector<cluster_extent> allocator::take_released() {
    const std::scoped_lock guard(mutex_);
    ENSURE(clusters_in(released_) <= released_count_, "released clusters are counted");
    return std::exchange(released_, {});
}

void allocator::reuse(const std::vector<cluster_extent>& freed, std::uint64_t asked) noexcept {
    const std::scoped_lock guard(mutex_);
    for (const cluster_extent& each : freed)
        map_.free_if_allocated(each);
    ENSURE(asked <= released_count_);
    released_count_ -= asked;
}

std::uint32_t allocator::free_count() noexcept {
    const std::scoped_lock guard(mutex_);
    // On a damaged volume, a cluster may have been released twice.
    const std::uint64_t all = released_count_ + map_.free_count() + reserved_;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(map_.count(), all));
}

std::uint32_t allocator::next() noexcept {
    const std::scoped_lock guard(mutex_);
    return next_;
}

}  // namespace sluice::fat
