#pragma once

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "bench/range_lock_peers/peer.hpp"
#include "bench/range_lock_peers/spinning.hpp"

namespace sluice::bench::range_locks {

/// The obvious exclusive range lock: a std::map of the held ranges under a std::mutex, without a
/// source. The map's nodes are kept for the next range, so that it does not pay for malloc.
class mutex_and_map {
    using held_ranges = std::map<std::uint64_t, std::uint64_t>;  // from begin to end

public:
    static constexpr bool has_readers = false;
    struct holder {
        held_ranges::iterator at;
    };
    // A node of libstdc++'s map is the header of its tree and the pair.
    static constexpr std::size_t held_bytes = 4 * sizeof(void*) + 2 * sizeof(std::uint64_t) + sizeof(holder);

    explicit mutex_and_map(const resource&) {}

    [[nodiscard]] std::size_t object_bytes() const noexcept { return sizeof(*this); }

    void lock(holder& held, const extent& where, access how) {
        for (backoff pause; not try_lock(held, where, how);)
            pause.wait();
    }
    [[nodiscard]] bool try_lock(holder& held, const extent& where, access) {
        const std::lock_guard holding(mutex_);
        const auto next = held_.lower_bound(where.begin);
        if (next != held_.end() and next->first < where.end) return false;
        if (next != held_.begin() and std::prev(next)->second > where.begin) return false;
        if (spare_.empty()) {
            held.at = held_.emplace_hint(next, where.begin, where.end);
            return true;
        }
        spare_.back().key() = where.begin;
        spare_.back().mapped() = where.end;
        held.at = held_.insert(next, std::move(spare_.back()));
        spare_.pop_back();
        return true;
    }
    void unlock(holder& held) {
        const std::lock_guard holding(mutex_);
        spare_.push_back(held_.extract(held.at));
    }

private:
    std::mutex mutex_;
    held_ranges held_;
    std::vector<held_ranges::node_type> spare_;
};

}  // namespace sluice::bench::range_locks
