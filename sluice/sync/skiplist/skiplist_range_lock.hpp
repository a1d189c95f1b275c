#pragma once

#include <utility>

#include "sluice/base/deadline.hpp"
#include "sluice/sync/atomics.hpp"
#include "sluice/sync/skiplist/range_skiplist.hpp"

// A lock on ranges of a resource that is itself lock-free. Optional: see
// docs/decisions/0007-skiplist-is-optional.md.

namespace sluice::sync {

/// The settings of a skip-list range lock.
struct skiplist_settings {
    /// Levels of the highest tower, 1 to 13; k levels serve 4^k ranges that are held at once.
    unsigned height_max = skiplist::height_max;
    /// Ranges with reserved address space, 64 bytes each, which becomes memory once they are used.
    /// They are found a little faster than further ones.
    std::uint32_t ranges_reserved = 32'702;
};

template <class Atomics, class Steps>
class basic_skiplist_range_lock;

/// A range that is held, or none. The destructor releases it. Thread safety: one thread at a time;
/// any thread may release it. Its lock outlives it.
template <class Atomics, class Steps>
class basic_skiplist_range_guard {
public:
    basic_skiplist_range_guard() noexcept = default;
    basic_skiplist_range_guard(basic_skiplist_range_guard&& other) noexcept
        : lock_(std::exchange(other.lock_, nullptr)), where_(other.where_), held_(other.held_) {}
    basic_skiplist_range_guard& operator=(basic_skiplist_range_guard&& other) noexcept {
        if (this == &other) return *this;
        unlock();
        lock_ = std::exchange(other.lock_, nullptr);
        where_ = other.where_;
        held_ = other.held_;
        return *this;
    }
    ~basic_skiplist_range_guard() { unlock(); }

    [[nodiscard]] explicit operator bool() const noexcept { return lock_ != nullptr; }
    [[nodiscard]] const byte_range& where() const noexcept { return where_; }

    /// Releases the range and wakes the threads that sleep because of it. A second call does
    /// nothing. Complexity: constant if no range was inserted directly before it, otherwise O(log
    /// n) expected in held ranges.
    void unlock() noexcept {
        if (lock_ != nullptr) std::exchange(lock_, nullptr)->unlock(held_);
    }

private:
    friend class basic_skiplist_range_lock<Atomics, Steps>;

    basic_skiplist_range_lock<Atomics, Steps>* lock_ = nullptr;
    byte_range where_ = byte_range::none_at(0);
    // No node if the range is nowhere.
    typename skiplist::range_skiplist<Atomics, Steps>::entry held_;
};

/// An exclusive lock on the ranges of one resource: no two held ranges overlap. Requests that do
/// not overlap neither wait for one another nor share a mutex: the ranges are the nodes of a
/// lock-free skip list (invariants: skiplist/range_skiplist.hpp; description:
/// docs/algorithms/skiplist_range_lock.md).
///
/// Not fair, and for one mode only: a request for a large range may wait as long as others lock
/// parts of it. Every byte_range can be locked, including empty ones, which are where byte_range
/// states.
///
/// Complexity: O(log n) expected in held ranges. Thread safety: any thread. try_lock() and unlock()
/// are lock-free, except for memory. Allocates: address space for `ranges_reserved` on construction
/// (2 MiB), which becomes memory as ranges use it; later only when more ranges are held or
/// requested at once than before, rarely, as much as there is (64 bytes for a range; 2^24 of
/// them at most, and without memory the program stops). The destructor frees it. Outlives its
/// guards. Size: 3.4 KiB.
template <class Atomics, class Steps = skiplist::sound_steps>
class basic_skiplist_range_lock {
public:
    using guard = basic_skiplist_range_guard<Atomics, Steps>;

    explicit basic_skiplist_range_lock(const skiplist_settings& wanted = {})
        : nodes_({.height_max = wanted.height_max,
                  .nodes_reserved = wanted.ranges_reserved + list::posts_max}) {}
    basic_skiplist_range_lock(const basic_skiplist_range_lock&) = delete;
    basic_skiplist_range_lock& operator=(const basic_skiplist_range_lock&) = delete;

    /// Waits until no overlapping range is held. Blocks: until then.
    [[nodiscard, gnu::always_inline]] guard lock(const byte_range& where) noexcept {
        return try_lock(where, deadline());
    }
    /// Returns an empty guard if an overlapping range is held.
    [[nodiscard, gnu::always_inline]] guard try_lock(const byte_range& where) noexcept {
        return try_lock(where, deadline::zero());
    }
    /// Returns an empty guard if the range was not acquired in time. Blocks: until the deadline.
    [[nodiscard, gnu::always_inline]] guard try_lock(const byte_range& where, deadline until) noexcept {
        guard made;
        made.where_ = where;
        if (where.is_nowhere() or take(made, until)) made.lock_ = this;
        return made;
    }
    [[nodiscard]] guard try_lock_for(const byte_range& where, deadline::duration within) noexcept {
        return try_lock(where, within);
    }
    [[nodiscard]] guard try_lock_until(const byte_range& where,
                                       deadline::steady_clock::time_point when) noexcept {
        return try_lock(where, when);
    }

    /// Returns the number of nodes. There are two sizes, low ones and, for one range in a thousand,
    /// tall ones: of each, at most as many as were used at once, by ranges held and requested; and
    /// of low ones `posts_max` more, or `spare_nodes_max` if several threads use them.
    [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.nodes(); }
    static constexpr std::size_t posts_max = skiplist::range_skiplist<Atomics, Steps>::posts_max;
    static constexpr std::size_t spare_nodes_max = skiplist::node_pool<Atomics>::idle_max + posts_max;
    /// Returns the number of levels that a search currently uses.
    [[nodiscard]] unsigned height() const noexcept { return ranges_.height(); }

private:
    friend class basic_skiplist_range_guard<Atomics, Steps>;
    using list = skiplist::range_skiplist<Atomics, Steps>;
    using bits = skiplist::state_word_bits;
    using time_point = typename Atomics::time_point;

    [[nodiscard]] static time_point end_of(deadline until) noexcept {
        if (until.is_none()) return time_point::max();
        return until.steady_end(Atomics::now(), deadline::system_clock::now());
    }
    [[nodiscard]] bool take(guard& made, deadline until) noexcept;
    [[nodiscard]] bool take_from(typename list::blocking_slot other, guard& made, deadline until) noexcept;
    [[nodiscard]] static bool wait(const typename list::blocking_slot& other, time_point until) noexcept;
    void unlock(const typename list::entry& held) noexcept;

    skiplist::node_pool<Atomics> nodes_;
    list ranges_{nodes_};
};

// Returns whether the range is held. Most requests find no conflict, and this is written for them:
// with fewer instructions for a pair of lock and unlock, the CPU can prefetch more memory of the
// next one while it waits for the stores of this one.
template <class Atomics, class Steps>
bool basic_skiplist_range_lock<Atomics, Steps>::take(guard& made, deadline until) noexcept {
    made.held_.own = nodes_.take();
    const typename list::blocking_slot other = ranges_.insert(made.held_, made.where_);
    return other.what == nullptr or take_from(other, made, until);
}

template <class Atomics, class Steps>
[[gnu::noinline]] bool basic_skiplist_range_lock<Atomics, Steps>::take_from(
    typename list::blocking_slot other, guard& made, deadline until) noexcept {
    const bool may_wait = not until.is_zero();
    const time_point end = may_wait ? end_of(until) : time_point();
    while (may_wait and wait(other, end)) {
        other = ranges_.insert(made.held_, made.where_);
        if (other.what == nullptr) return true;
    }
    nodes_.give(made.held_.own);
    return false;
}

// The state word of a node counts the ranges released from it; its lowest bit shows that a thread
// may be asleep. A waiter sets that bit, then checks the mark; a releasing thread marks, then
// checks the bit. Both are seq_cst, so one of them sees the other. The state word has changed
// before the node is used for another range, so no thread sleeps for a range that does not
// conflict.
//
// Returns false after the deadline, and true if it is worth trying again.
template <class Atomics, class Steps>
bool basic_skiplist_range_lock<Atomics, Steps>::wait(const typename list::blocking_slot& other,
                                                     time_point until) noexcept {
    auto& state_word = other.what->state_word;
    const std::uint32_t quiet = other.state_word & ~bits::asleep;
    for (unsigned round = 0; round != Atomics::spins_max; ++round) {
        if ((state_word.load(std::memory_order_relaxed) & ~bits::asleep) != quiet) return true;
        Atomics::back_off(round);
    }
    std::uint32_t seen = quiet;
    if (not state_word.compare_exchange_strong(seen, quiet | bits::asleep, std::memory_order_seq_cst,
                                               std::memory_order_seq_cst) and
        seen != (quiet | bits::asleep))
        return true;
    // seq_cst: pairs with the mark of erase(), see above.
    if (Steps::is_marked(other.what->at(0).load(std::memory_order_seq_cst))) return true;
    Atomics::wait(state_word, quiet | bits::asleep, until);
    return until == time_point::max() or Atomics::now() < until;
}

template <class Atomics, class Steps>
void basic_skiplist_range_lock<Atomics, Steps>::unlock(const typename list::entry& held) noexcept {
    if (held.own.what == nullptr) return;  // a range that is nowhere
    auto& state_word = held.own.what->state_word;
    ranges_.erase(held, [&state_word] {
        // seq_cst: pairs with the exchange of wait(), see above.
        const std::uint32_t before = state_word.load(std::memory_order_seq_cst);
        // Overwrites a bit that was set since: the thread that set it sees the mark. release: after
        // the mark.
        state_word.store(bits::signalled(before), std::memory_order_release);
        if ((before & bits::asleep) != 0) Atomics::wake_all(state_word);
    });
    nodes_.give(held.own);
}

using skiplist_range_lock = basic_skiplist_range_lock<real_atomics>;
using skiplist_range_guard = skiplist_range_lock::guard;

extern template class basic_skiplist_range_lock<real_atomics>;

}  // namespace sluice::sync
