#pragma once

#include "bench/range_lock_peers/kogan_node.hpp"

namespace sluice::bench::range_locks {

/// The reader-writer form of the list lock of Kogan, Dice and Issa (EuroSys 2020; see kogan_list),
/// with the fast path for an empty list.
///
/// Readers may overlap and are sorted by their first byte. So a range that fits between its
/// neighbours may still overlap an earlier reader with a late end. Hence a second check after the
/// link: a reader walks on from its own node over all that begin before it ends, and waits for the
/// writers among them; a writer walks from the head to its own node, and if an earlier reader
/// reaches into it, marks itself released and starts again. If two link concurrently, the later
/// sees the earlier, and only the writer yields: writers can starve.
class kogan_reader_writer_list {
public:
    static constexpr bool has_readers = true;
    struct holder {
        kogan_node* node = nullptr;
    };
    static constexpr std::size_t held_bytes = sizeof(kogan_node) + sizeof(holder);

    explicit kogan_reader_writer_list(const resource&) noexcept {}

    [[nodiscard]] std::size_t object_bytes() const noexcept { return sizeof(*this); }

    void lock(holder& held, const extent& where, access how) {
        kogan_pools::pool& pool = kogan_pools::of_this_thread();
        backoff pause;
        for (;;) {
            kogan_node& fresh = make(pool, where, how);
            outcome end = enter(fresh, pool, backoff::spins_max);
            for (; end == outcome::blocked; end = enter(fresh, pool, backoff::spins_max))
                pause.wait();
            if (end == outcome::linked and how == access::shared) wait_for_writers(fresh, pool, pause);
            if (end == outcome::alone or how == access::shared or no_reader_reaches_into(fresh, pool)) {
                held.node = &fresh;
                return;
            }
            fresh.release();
            pause.wait();
        }
    }
    [[nodiscard]] bool try_lock(holder& held, const extent& where, access how) {
        kogan_pools::pool& pool = kogan_pools::of_this_thread();
        kogan_node& fresh = make(pool, where, how);
        const outcome end = enter(fresh, pool, 0);
        if (end == outcome::blocked) {
            pool.release(fresh);
            return false;
        }
        const bool is_clear =
            end == outcome::alone or
            (how == access::shared ? no_writer_follows(fresh, pool) : no_reader_reaches_into(fresh, pool));
        held.node = &fresh;
        if (not is_clear) unlock(held);
        return is_clear;
    }
    void unlock(holder& held) noexcept {
        if (not head_.take_out(*held.node)) held.node->release();
    }

private:
    enum class outcome { blocked, linked, alone };

    static kogan_node& make(kogan_pools::pool& pool, const extent& where, access how) {
        kogan_node& fresh = pool.take();
        fresh.where = where;
        fresh.how = how;
        return fresh;
    }

    // The action of `fresh` at its neighbour `next`.
    enum class order { advance, insert, wait };
    [[nodiscard]] static order compare(const kogan_node* next, const kogan_node& fresh) noexcept {
        if (next == nullptr or next->where.begin >= fresh.where.end) return order::insert;
        const bool both_read = next->how == access::shared and fresh.how == access::shared;
        if (both_read) return next->where.begin <= fresh.where.begin ? order::advance : order::insert;
        return next->where.end <= fresh.where.begin ? order::advance : order::wait;
    }

    [[nodiscard]] outcome enter(kogan_node& fresh, kogan_pools::pool& pool, unsigned looks) {
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
                continue;
            }
            switch (compare(next, fresh)) {
                case order::advance:
                    place.advance();
                    break;
                case order::wait:
                    if (looks == 0) return outcome::blocked;
                    --looks;
                    relax();
                    break;
                case order::insert: {
                    const bool is_alone = next == nullptr and head_.is_at(place);
                    if (place.insert(fresh, fresh.link() | (is_alone ? kogan_node::mark : 0)))
                        return is_alone ? outcome::alone : outcome::linked;
                }
            }
        }
    }

    void wait_for_writers(kogan_node& mine, kogan_pools::pool& pool, backoff& pause) {
        while (not no_writer_follows(mine, pool))
            pause.wait();
    }
    // Checks the nodes that begin before `mine` ends. Stops at the first: from there on it is that
    // one's turn.
    [[nodiscard]] bool no_writer_follows(kogan_node& mine, kogan_pools::pool& pool) {
        const kogan_pools::walk walking(pool);
        kogan_place place{.from = &mine.next, .link = 0};
        place.look();
        for (;;) {
            // The current reader was released; ours is not.
            if (kogan_node::is_marked(place.link)) {
                place.from = &mine.next;
                place.look();
                continue;
            }
            kogan_node* const next = place.node();
            if (next == nullptr or next->where.begin >= mine.where.end) return true;
            if (next->is_released())
                place.unlink(pool);
            else if (next->how == access::exclusive)
                return false;
            else
                place.advance();
        }
    }
    [[nodiscard]] bool no_reader_reaches_into(kogan_node& mine, kogan_pools::pool& pool) {
        const kogan_pools::walk walking(pool);
        kogan_place place = head_.begin();
        for (;;) {
            if (kogan_node::is_marked(place.link)) {
                head_.leave_marked(place);
                continue;
            }
            kogan_node* const next = place.node();
            if (next == &mine) return true;
            if (next->is_released())
                place.unlink(pool);
            else if (next->where.end > mine.where.begin)
                return false;
            else
                place.advance();
        }
    }

    kogan_head head_;
};

}  // namespace sluice::bench::range_locks
