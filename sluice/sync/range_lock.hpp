#pragma once

#include <coroutine>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "sluice/base/deadline.hpp"
#include "sluice/sync/interval_set.hpp"
#include "sluice/sync/latch.hpp"

// Locks on ranges of a resource: readers share, writers do not, and who comes first gets it first.

namespace sluice::sync {

enum class lock_mode : unsigned char { shared, exclusive };

/// What somebody wants to lock.
struct lock_args {
    byte_range where;
    lock_mode mode = lock_mode::exclusive;
    /// Whose it is; null: nobody's in particular. A shared request never waits for locks of its own owner, an
    /// exclusive one does ([MS-FSA] 2.1.5.8): who asks twice for the same bytes in one thread waits for ever.
    const void* owner = nullptr;
};

/// What is in the way of a request.
struct lock_conflict {
    byte_range where;
    lock_mode mode = lock_mode::exclusive;
    const void* owner = nullptr;
    bool is_held = false;  // otherwise it waits, and came first
};

template <class Atomics>
class basic_range_lock;
template <class Atomics>
class basic_range_request;

namespace detail {

/// A lock that is held or waited for; lives in a guard.
template <class Atomics>
class lock_node final : public interval_node {
public:
    enum : std::uint32_t { settled, waiting, asleep };  // of `state`

    lock_node() noexcept = default;

    const void* owner = nullptr;
    basic_range_request<Atomics>* request = nullptr;  // null: a thread waits
    lock_node* next = nullptr;                        // in a list of nodes whose wait is over
    std::uint32_t blockers = 0;  // earlier nodes, held or waiting, that are in the way; not 0: it waits
    bool is_cancelled = false;
    // Written by the waiter (waiting to asleep) and by whoever ends its wait (to settled, at last).
    typename Atomics::template atomic<std::uint32_t> state{settled};
};

}  // namespace detail

/// A lock that is held, or nothing. Gives it back when it goes.
///
/// Contains all that the lock needs to remember: it allocates nothing, and memory is that of the guards.
/// Thread safety: one thread at a time; any thread may give back. Outlived by its lock.
template <class Atomics>
class basic_range_guard {
public:
    basic_range_guard() noexcept = default;
    /// Complexity: constant. Blocks: briefly, while another thread changes the same lock.
    basic_range_guard(basic_range_guard&& other) noexcept { take(other); }
    basic_range_guard& operator=(basic_range_guard&& other) noexcept {
        if (this == &other) return *this;
        unlock();
        take(other);
        return *this;
    }
    ~basic_range_guard() { unlock(); }

    [[nodiscard]] explicit operator bool() const noexcept { return lock_ != nullptr; }
    [[nodiscard]] const byte_range& where() const noexcept { return where_; }

    /// Gives the lock back, and lets those go on that waited for nothing else. Again: does nothing.
    /// Complexity: O(log n) expected in held and waiting ranges, plus those that overlap.
    void unlock() noexcept {
        if (lock_ != nullptr) std::exchange(lock_, nullptr)->unlock(node_);
    }
    /// Lets others share what was exclusive. The guard holds something.
    void downgrade() noexcept { lock_->downgrade(node_); }
    /// Makes a shared lock exclusive if nobody else holds or awaits any of it, otherwise says false and
    /// leaves it shared. Never waits: two that did would wait for each other.
    [[nodiscard]] bool try_upgrade() noexcept { return lock_->try_upgrade(node_); }
    /// Gives back what is not part of `kept`, which lies within what is held.
    void shrink(const byte_range& kept) noexcept {
        ENSURE(where_.covers(kept), "what is kept was held before");
        lock_->shrink(node_, kept);
        where_ = kept;
    }
    /// Hands the bytes from `at` on to `rest`, which holds nothing; nobody gets in between. `at` is one of
    /// the bytes, not the first.
    void split(std::uint64_t at, basic_range_guard& rest) noexcept;

private:
    friend class basic_range_lock<Atomics>;
    friend class basic_range_request<Atomics>;

    void take(basic_range_guard& other) noexcept {
        if (other.lock_ == nullptr) return;
        lock_ = std::exchange(other.lock_, nullptr);
        where_ = other.where_;
        lock_->relocate(other.node_, node_);
    }

    basic_range_lock<Atomics>* lock_ = nullptr;
    byte_range where_ = byte_range::none_at(0);
    detail::lock_node<Atomics> node_;
};

/// Waits for a lock without a thread: see basic_range_lock::lock_async(). Stays where it is, and lives until
/// completed() is called. Thread safety: as a guard.
template <class Atomics>
class basic_range_request {
public:
    basic_range_request() noexcept { guard_.node_.request = this; }
    basic_range_request(const basic_range_request&) = delete;
    basic_range_request& operator=(const basic_range_request&) = delete;

    /// The lock, once it is granted; nothing after a cancel.
    [[nodiscard]] basic_range_guard<Atomics> take() noexcept { return std::move(guard_); }

protected:
    ~basic_range_request() {
        ENSURE(guard_.node_.state.load(std::memory_order_relaxed) == detail::lock_node<Atomics>::settled,
               "a request lives until it is completed");
    }

private:
    friend class basic_range_lock<Atomics>;

    /// Called once, when a wait ends: on the thread that ended it, without any latch held, as the last thing
    /// done to this object.
    virtual void completed(bool is_granted) noexcept = 0;

    basic_range_guard<Atomics> guard_;
};

/// A reader-writer lock on the ranges of one resource, strictly fair: a request waits for those that came
/// before it and are in its way, held or waiting, and for no others; so nobody starves, and disjoint requests
/// never wait for one another. (Interval tree with conflict counts: Kara 2013, Bueso 2017; own design.)
///
/// Invariants, under the latch:
///   1. the set holds every range that is held or waited for, each with the number of its arrival;
///   2. `blockers` of a node is how many nodes of the set came before it and conflict with it;
///   3. a node is held if that is 0 and it was not cancelled; so two that are held never conflict;
///   4. a wait ends once: whoever takes `blockers` to 0, or the node out of the set, puts it into its list of
///      ended waits, and tells it after the latch, `state` last: from then on the node may be gone.
/// Complexity: O(log n) expected in the ranges held and waited for, plus those that overlap.
/// Thread safety: any thread. Allocates: nothing. Blocks: for a latch held for a few dozen instructions, and
/// where it says so. Outlives its guards and requests.
template <class Atomics>
class basic_range_lock {
public:
    using guard = basic_range_guard<Atomics>;
    using request = basic_range_request<Atomics>;

    basic_range_lock() noexcept = default;
    basic_range_lock(const basic_range_lock&) = delete;
    basic_range_lock& operator=(const basic_range_lock&) = delete;

    /// Waits until it is granted. Empty only if cancel_all() ended the wait. Blocks: until then.
    [[nodiscard]] guard lock(const lock_args& wanted) noexcept { return try_lock(wanted, deadline()); }
    /// Empty if anything is in the way, be it only a request that came first and waits.
    [[nodiscard]] guard try_lock(const lock_args& wanted) noexcept {
        return try_lock(wanted, deadline::zero());
    }
    /// Empty if it was not granted in time. Blocks: until the deadline.
    [[nodiscard]] guard try_lock(const lock_args& wanted, deadline until) noexcept;
    [[nodiscard]] guard try_lock_for(const lock_args& wanted, deadline::duration within) noexcept {
        return try_lock(wanted, within);
    }
    [[nodiscard]] guard try_lock_until(const lock_args& wanted,
                                       deadline::steady_clock::time_point when) noexcept {
        return try_lock(wanted, when);
    }
    /// All or nothing, at once: `guards` holds them in the order of `wanted` if it says true. Those of one
    /// call can be in each other's way like any others.
    [[nodiscard]] bool try_lock_all(std::span<const lock_args> wanted, std::span<guard> guards) noexcept;

    /// Asks without waiting. True: granted, and completed() will not be called. False: completed() will be.
    [[nodiscard]] bool lock_async(request& by, const lock_args& wanted) noexcept;
    /// Ends a wait: completed(false) is called before this returns true. False if it was over already.
    bool cancel(request& waiting) noexcept;
    /// The same for all that wait on behalf of an owner, in whatever form; how many there were.
    /// Complexity: O(n) in the ranges held and waited for.
    std::size_t cancel_all(const void* owner) noexcept;

    /// `co_await range_lock.co_lock(wanted)` gives the guard. Suspends: until it is granted, or cancelled,
    /// and then it is empty; goes on upon the thread that gave the range back.
    [[nodiscard]] auto co_lock(const lock_args& wanted) noexcept;

    /// What would be in the way of `wanted`, without asking for it: in order of the first byte, until `visit`
    /// returns false. `visit` does not use the lock.
    template <class Visit>
    void for_each_conflict(const lock_args& wanted, Visit&& visit) {
        const std::lock_guard holding(latch_);
        visit_conflicts(wanted, [&](const node& one) {
            return visit(lock_conflict{.where = one.where(),
                                       .mode = one.is_writer() ? lock_mode::exclusive : lock_mode::shared,
                                       .owner = one.owner,
                                       .is_held = one.blockers == 0});
        });
    }
    [[nodiscard]] std::optional<lock_conflict> first_conflict(const lock_args& wanted) {
        std::optional<lock_conflict> found;
        for_each_conflict(wanted, [&](const lock_conflict& one) {
            found = one;
            return false;
        });
        return found;
    }

private:
    friend class basic_range_guard<Atomics>;
    using node = detail::lock_node<Atomics>;
    using time_point = typename Atomics::time_point;

    // Waits that are over and not told yet.
    struct ended_waits {
        node* first = nullptr;

        void add(node& one) noexcept {
            one.next = first;
            first = &one;
        }
    };

    // Whether `later` has to wait for what came before it.
    [[nodiscard]] static bool conflicts(const lock_args& later, const node& earlier) noexcept {
        if (later.mode == lock_mode::exclusive) return true;
        return earlier.is_writer() and (later.owner == nullptr or later.owner != earlier.owner);
    }
    [[nodiscard]] static lock_args args_of(const node& one) noexcept {
        return {.where = one.where(),
                .mode = one.is_writer() ? lock_mode::exclusive : lock_mode::shared,
                .owner = one.owner};
    }
    [[nodiscard]] static node& node_of(interval_node& one) noexcept { return static_cast<node&>(one); }

    template <class Visit>
    void visit_conflicts(const lock_args& wanted, Visit&& visit) const {
        const auto whom =
            wanted.mode == lock_mode::shared ? interval_set::visiting::writers : interval_set::visiting::all;
        (void)set_.for_each_overlap(wanted.where, whom, [&](interval_node& one) {
            return not conflicts(wanted, node_of(one)) or visit(node_of(one));
        });
    }
    // Calls `visit(node)` for everyone behind `one` who counts it as a blocker.
    template <class Visit>
    void visit_blocked(const node& one, Visit&& visit) const {
        const auto whom = one.is_writer() ? interval_set::visiting::all : interval_set::visiting::writers;
        (void)set_.for_each_overlap(one.where(), whom, [&](interval_node& other) {
            node& behind = node_of(other);
            if (behind.number() > one.number() and conflicts(args_of(behind), one)) visit(behind);
            return true;
        });
    }

    // Under the latch.
    [[nodiscard]] std::uint32_t count_blockers(const lock_args& wanted) const noexcept;
    void enter(node& fresh, const lock_args& wanted, std::uint32_t blockers) noexcept;
    void leave(node& leaving, ended_waits& ended) noexcept;
    static void unblock(node& behind, ended_waits& ended) noexcept;

    // Without it.
    static void tell(ended_waits& ended) noexcept;
    [[nodiscard]] bool wait(node& waiting, time_point until) noexcept;
    [[nodiscard]] bool give_up(node& waiting) noexcept;
    static void settle(node& waiting) noexcept;
    [[nodiscard]] static time_point end_of(deadline until) noexcept;

    void unlock(node& held) noexcept;
    void downgrade(node& held) noexcept;
    [[nodiscard]] bool try_upgrade(node& held) noexcept;
    void shrink(node& held, const byte_range& kept) noexcept;
    void split(node& held, const byte_range& kept, node& rest, const byte_range& rest_where) noexcept;
    void relocate(node& from, node& to) noexcept;

    basic_latch<Atomics> latch_;
    interval_set set_;
    std::uint64_t arrivals_ = 0;
};

using range_lock = basic_range_lock<real_atomics>;
using range_guard = basic_range_guard<real_atomics>;
using range_request = basic_range_request<real_atomics>;

}  // namespace sluice::sync

#include "sluice/sync/range_lock_impl.hpp"

namespace sluice::sync {
extern template class basic_range_lock<real_atomics>;
}
