#pragma once

#include "bench/range_lock_peers/kogan_node.hpp"

namespace sluice::bench::range_locks {

/// The exclusive range lock on a sorted list: A. Kogan, D. Dice, S. Issa, "Scalable Range Locks for
/// Scalable Address Spaces and Beyond", EuroSys 2020. With `has_fast_path`, locking an empty list
/// is one compare-and-swap of the head, and so is its release.
///
/// Invariant: live nodes are disjoint and sorted. A range is locked by the compare-and-swap that
/// links it between two neighbours without an overlap: it fails if either was inserted or removed,
/// or is being removed. It is released by the mark in its own link; the next walk unlinks it.
/// Waiting leaves the walk, so a range that is held for long does not stop reclamation.
template <bool has_fast_path>
class kogan_list {
public:
    static constexpr bool has_readers = false;
    struct holder {
        kogan_node* node = nullptr;
    };
    static constexpr std::size_t held_bytes = sizeof(kogan_node) + sizeof(holder);

    explicit kogan_list(const resource&) noexcept {}

    [[nodiscard]] std::size_t object_bytes() const noexcept { return sizeof(*this); }

    void lock(holder& held, const extent& where, access) {
        kogan_pools::pool& pool = kogan_pools::of_this_thread();
        held.node = &make(pool, where);
        for (backoff pause; not enter(*held.node, pool, backoff::spins_max);)
            pause.wait();
    }
    [[nodiscard]] bool try_lock(holder& held, const extent& where, access) {
        kogan_pools::pool& pool = kogan_pools::of_this_thread();
        kogan_node& fresh = make(pool, where);
        if (enter(fresh, pool, 0)) {
            held.node = &fresh;
            return true;
        }
        pool.release(fresh);
        return false;
    }
    void unlock(holder& held) noexcept {
        if (not has_fast_path or not head_.take_out(*held.node)) held.node->release();
    }

private:
    static kogan_node& make(kogan_pools::pool& pool, const extent& where) {
        kogan_node& fresh = pool.take();
        fresh.where = where;
        return fresh;
    }

    // Returns false if a conflicting range remains for `looks` polls.
    [[nodiscard]] bool enter(kogan_node& fresh, kogan_pools::pool& pool, unsigned looks) {
        const kogan_pools::walk walking(pool);
        kogan_place place = head_.begin();
        for (;;) {
            if (kogan_node::is_marked(place.link)) {
                head_.leave_marked(place);
                continue;
            }
            kogan_node* const next = place.node();
            if (next != nullptr and next->is_released()) {
                place.unlink(pool);
            } else if (next != nullptr and next->where.end <= fresh.where.begin) {
                place.advance();
            } else if (next != nullptr and next->where.begin < fresh.where.end) {
                if (looks == 0) return false;
                --looks;
                relax();
            } else {
                const bool is_alone = has_fast_path and next == nullptr and head_.is_at(place);
                if (place.insert(fresh, fresh.link() | (is_alone ? kogan_node::mark : 0))) return true;
            }
        }
    }

    kogan_head head_;
};

}  // namespace sluice::bench::range_locks
