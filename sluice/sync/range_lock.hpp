#pragma once

#include <optional>
#include <span>
#include <utility>

#include "sluice/base/deadline.hpp"
#include "sluice/sync/bucket_table.hpp"
#include "sluice/sync/range_guard.hpp"
#include "sluice/sync/small_mutex.hpp"

// Locks on ranges of a resource: readers share, writers do not, and requests are granted in order
// of arrival.

namespace sluice::sync {

struct range_lock_options {
    static constexpr std::uint32_t without_limit = ~std::uint32_t{0};

    /// How often a waiting request may be overtaken by later ones that do not conflict with any
    /// holder. 0: never; then, with [1,3] held and [2,7] waiting, [4,5] waits only for its turn.
    /// Without limit, only held ranges conflict, as for files ([MS-FSA] 2.1.4.10), and a wide
    /// request can starve. Unless it is 0, a release checks all requests that wait for part of the
    /// range, and with a limit also their conflicts.
    std::uint32_t overtakes_max = 0;
    /// Whether it may allocate memory to spread over buckets. A lock that is seldom held for many
    /// ranges at once needs none. A lock with more queries for conflicts than requests is faster
    /// without.
    bool spreads = true;
};

/// A reader-writer lock on the ranges of one resource, strictly fair. A request waits for earlier
/// requests that conflict with it, held or waiting, and for no others. So no request starves, and
/// disjoint requests never wait for one another.
///
/// Its form depends on its use. At rest it is one word; a single held range is stored in the word.
/// A second range, or a conflict, is stored under a mutex in a set of ranges with their wait order
/// (fair_set.hpp). Once many were granted next to others, those without conflicts are spread over
/// buckets (bucket_table.hpp), until one thread is alone again. See docs/algorithms/range_lock.md.
///
/// Invariants; `word_` is one of
///   idle      nothing is held, the set is empty;
///   a node    that one is held, the set is empty; its holder or that of the mutex removes it;
///   in_set    all held or waiting nodes are in the set;
///   a table   a node is in the table, or in the set, as bucket_table.hpp states;
/// and the holder of the mutex finds one of the last two.
/// Complexity: constant without conflicts; otherwise O(log n) expected in the ranges in the set,
/// where many request one range; plus those that overlap at most (fair_set.hpp); for a range longer
/// than two segments of a table, plus its buckets. Thread safety: any thread. Allocates: a table of
/// some KiB when many ranges are granted next to others, and larger ones for thousands; works
/// without if there is no memory; keeps them until it is destroyed. Blocks: for locks held for
/// some dozen instructions, or while a table changes, and where stated. Outlives its guards and
/// requests.
template <class Atomics>
class basic_range_lock {
public:
    using guard = basic_range_guard<Atomics>;
    using request = basic_range_request<Atomics>;

    basic_range_lock() noexcept : basic_range_lock(range_lock_options()) {}
    explicit basic_range_lock(const range_lock_options& options) noexcept
        : set_(options.overtakes_max),
          contention_limit_(options.spreads ? tuning::contention_max : never_spreads) {}
    basic_range_lock(const basic_range_lock&) = delete;
    basic_range_lock& operator=(const basic_range_lock&) = delete;
    ~basic_range_lock() {
        const std::uint64_t word = word_.load(std::memory_order_relaxed);
        ENSURE(word == idle or table_of(word) != nullptr, "guards and requests destroyed before their lock");
        table::release(tables_);
    }

    /// Waits until the lock is granted. Returns an empty guard only if cancel_all() ended the wait.
    /// Blocks: until then.
    [[nodiscard, gnu::always_inline]] guard lock(const lock_args& wanted) noexcept {
        return try_lock(wanted, deadline());
    }
    /// Returns an empty guard if anything conflicts, even an earlier request that waits.
    [[nodiscard, gnu::always_inline]] guard try_lock(const lock_args& wanted) noexcept {
        return try_lock(wanted, deadline::zero());
    }
    /// Returns an empty guard if the lock was not granted in time. Blocks: until the deadline.
    [[nodiscard, gnu::always_inline]] guard try_lock(const lock_args& wanted, deadline until) noexcept {
        guard made;
        lock_into(made, wanted, until);
        return made;
    }
    [[nodiscard]] guard try_lock_for(const lock_args& wanted, deadline::duration within) noexcept {
        return try_lock(wanted, within);
    }
    [[nodiscard]] guard try_lock_until(const lock_args& wanted,
                                       deadline::steady_clock::time_point when) noexcept {
        return try_lock(wanted, when);
    }
    /// Locks all ranges or none, without a wait. If it returns true, `guards` has them in the order
    /// of `wanted`. Ranges of one call can conflict with each other like any others.
    [[nodiscard]] bool try_lock_all(std::span<const lock_args> wanted, std::span<guard> guards) noexcept;

    /// Requests a lock without a wait. Returns true if it is granted; then completed() is not
    /// called. Otherwise completed() will be.
    [[nodiscard]] bool lock_async(request& by, const lock_args& wanted) noexcept;
    /// Ends a wait. completed(false) is called before this returns true, unless a completion at the
    /// deepest level of this thread calls it (completions.hpp): then after that one. So destroy the
    /// request in completed() or after it, not because of the result. Returns false if the wait was
    /// over.
    bool cancel(request& waiting) noexcept;
    /// The same for all waits on behalf of an owner, in any form. Returns their number. Complexity:
    /// O(n) in the ranges held and waited for.
    std::size_t cancel_all(const void* owner) noexcept;

    /// Visits the ranges that would conflict with `wanted`, without a request: in order of the
    /// first byte, until `visit` returns false. `visit` does not use the lock.
    template <class Visit>
    void for_each_conflict(const lock_args& wanted, Visit&& visit);
    [[nodiscard]] std::optional<lock_conflict> first_conflict(const lock_args& wanted) {
        std::optional<lock_conflict> found;
        for_each_conflict(wanted, [&](const lock_conflict& one) {
            found = one;
            return false;
        });
        return found;
    }

    /// Returns the size of the allocated tables. Blocks: as above.
    [[nodiscard]] std::size_t bytes_allocated() noexcept;

private:
    friend class basic_range_guard<Atomics>;
    using node = lock_node<Atomics>;
    using ended = ended_waits<Atomics>;
    using table = bucket_table<Atomics>;
    using time_point = typename Atomics::time_point;
    using tuning = typename Atomics::tuning;

    // Values of `word_`; addresses of nodes and tables end in four zeros.
    static constexpr std::uint64_t idle = 0;
    static constexpr std::uint64_t in_set = 1;
    static constexpr std::uint64_t table_tag = 2;
    [[nodiscard]] static std::uint64_t word_of(const node& one) noexcept {
        return reinterpret_cast<std::uintptr_t>(&one);
    }
    [[nodiscard]] static table* table_of(std::uint64_t word) noexcept {
        return (word & table_tag) == 0 ? nullptr : reinterpret_cast<table*>(word & ~table_tag);
    }

    // While it exists, this thread holds the mutex, and all held ranges are in the set or in a
    // table.
    class holding {
    public:
        explicit holding(basic_range_lock& lock) noexcept : lock_(lock) { lock.begin_holding(); }
        holding(const holding&) = delete;
        holding& operator=(const holding&) = delete;
        ~holding() { lock_.end_holding(); }

    private:
        basic_range_lock& lock_;
    };

    // Inlined into the caller, the cheapest lock is a few stores and a compare-and-swap: no memory
    // is written in one width and read again in another, which costs more than either.
    [[gnu::always_inline]] void lock_into(guard& made, const lock_args& wanted, deadline until) noexcept {
        made.lock_ = this;
        made.node_.describe(wanted);
        if (not try_lock_word(made.node_) and not lock_next_to_others(made.node_, until))
            made.lock_ = nullptr;
    }

    // For callers that do not hold the mutex.
    [[nodiscard]] bool try_lock_word(node& fresh) noexcept;
    [[nodiscard]] bool try_lock_table(node& fresh) noexcept;
    [[nodiscard]] bool lock_next_to_others(node& fresh, deadline until) noexcept;
    [[nodiscard]] bool take(node& fresh, deadline until) noexcept;
    [[nodiscard]] bool wait(node& waiting, time_point until) noexcept;
    [[nodiscard]] bool cancel(node& waiting) noexcept;
    static void notify_granted(ended& over) noexcept { notify(over, node::granted); }
    static void notify(ended& over, std::uint32_t how) noexcept;
    [[nodiscard]] static bool await_outcome(node& waiting) noexcept;
    [[nodiscard]] static time_point end_of(deadline until) noexcept;
    void begin_holding() noexcept;
    void look() noexcept;

    // For guards.
    void unlock(node& held) noexcept;
    void unlock_next_to_others(node& held) noexcept;
    void unlock_slow_path(node& held) noexcept;
    void downgrade(node& held) noexcept;
    [[nodiscard]] bool try_upgrade(node& held) noexcept;
    void shrink(node& held, const byte_range& kept) noexcept;
    void split(node& held, const byte_range& kept, node& rest, const byte_range& rest_where) noexcept;
    void relocate(node& from, node& to) noexcept;

    // For callers that hold the mutex.
    enum class placed { held, waiting, refused };
    [[nodiscard]] placed place(node& fresh, bool may_wait) noexcept;
    [[nodiscard]] bool place_in_table(node& fresh) noexcept;
    void release(node& held, ended& over) noexcept;
    void unmark(node& one) noexcept;
    void bring(node& held) noexcept;
    void end_holding() noexcept;
    [[nodiscard]] table* current() const noexcept { return table_of(word_.load(std::memory_order_relaxed)); }
    void spread(unsigned buckets_log2) noexcept;
    void retire_table(table& from) noexcept;
    [[nodiscard]] bool relieve(table& crowded) noexcept;

    typename Atomics::template atomic<std::uint64_t> word_{idle};
    static constexpr std::uint32_t never_spreads = ~std::uint32_t{0};
    // The mutex guards the members below.
    basic_small_mutex<Atomics> mutex_;
    std::uint32_t contention_ = 0;                 // grants next to others, minus how
                                                   // often all were released
    [[no_unique_address]] fair_set<Atomics> set_;  // the next one uses its padding
    std::uint32_t contention_limit_;
    table* tables_ = nullptr;                 // all tables, the newest first
    std::uint16_t full_bucket_requests_ = 0;  // requests that found a bucket full
    std::uint16_t wide_requests_ = 0;         // since the last check
    std::uint32_t single_thread_checks_ = 0;
    const void* last_checker_ = nullptr;  // identifies a thread
};

using range_lock = basic_range_lock<real_atomics>;
using range_guard = basic_range_guard<real_atomics>;
using range_request = basic_range_request<real_atomics>;

// acquire, release: changes made under a range are visible to the next holder, in any form. The
// thread that takes the node out of the word sees its contents.
template <class Atomics>
[[gnu::always_inline]] inline bool basic_range_lock<Atomics>::try_lock_word(node& fresh) noexcept {
    if (fresh.where().is_nowhere()) [[unlikely]]
        return true;  // conflicts with no other range, so there is nothing to store
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    return word == idle and word_.compare_exchange_strong(word, word_of(fresh), std::memory_order_acq_rel,
                                                          std::memory_order_relaxed);
}

template <class Atomics>
inline bool basic_range_lock<Atomics>::try_lock_table(node& fresh) noexcept {
    // acquire: pairs with the release of spread(), for the table.
    table* const in_use = table_of(word_.load(std::memory_order_acquire));
    return in_use != nullptr and in_use->enter(fresh) == table::entering::entered;
}

// Returns whether the range is held.
template <class Atomics>
bool basic_range_lock<Atomics>::lock_next_to_others(node& fresh, deadline until) noexcept {
    return try_lock_table(fresh) or take(fresh, until);
}

template <class Atomics>
[[gnu::always_inline]] inline void basic_range_lock<Atomics>::unlock(node& held) noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    // release: pairs with the acquire of try_lock_word() and begin_holding().
    if (word == word_of(held) and
        word_.compare_exchange_strong(word, idle, std::memory_order_release, std::memory_order_relaxed))
        return;
    unlock_next_to_others(held);
}

template <class Atomics>
void basic_range_lock<Atomics>::unlock_next_to_others(node& held) noexcept {
    // acquire: pairs with the release of spread(), for the table.
    table* const in_use = table_of(word_.load(std::memory_order_acquire));
    if (in_use == nullptr) return unlock_slow_path(held);
    switch (in_use->leave(held)) {
        case table::leaving::left:
            return;
        case table::leaving::left_and_check:
            return look();
        case table::leaving::disputed:
        case table::leaving::not_here:
            return unlock_slow_path(held);
    }
}

template <class Atomics>
bool basic_range_lock<Atomics>::lock_async(request& by, const lock_args& wanted) noexcept {
    ENSURE(not by.guard_, "a request asks for one lock at a time");
    node& fresh = by.guard_.node_;
    by.guard_.lock_ = this;
    fresh.describe(wanted);
    fresh.request = &by;
    if (try_lock_word(fresh) or try_lock_table(fresh)) return true;
    const holding all(*this);
    // Once it waits and the mutex is released, it may be completed and destroyed.
    return place(fresh, true) == placed::held;
}

template <class Atomics>
void basic_range_lock<Atomics>::relocate(node& from, node& to) noexcept {
    to.describe(from.args());
    if (from.where().is_nowhere()) return;
    // acquire: pairs with the release of spread(), for the table.
    std::uint64_t word = word_.load(std::memory_order_acquire);
    // release: pairs with the acquire of begin_holding(), for the node; acquire: as above.
    if (word == word_of(from) and word_.compare_exchange_strong(word, word_of(to), std::memory_order_release,
                                                                std::memory_order_acquire))
        return;
    if (table* const in_use = table_of(word); in_use != nullptr and in_use->relocate(from, to)) return;
    const holding all(*this);
    if (table* const in_use = current(); in_use != nullptr) in_use->relocate_under_mutex(from, to);
    to.is_marked = std::exchange(from.is_marked, false);
    if (from.is_in_set()) set_.relocate(from, to);
}

template <class Atomics>
template <class Visit>
void basic_range_lock<Atomics>::for_each_conflict(const lock_args& wanted, Visit&& visit) {
    if (wanted.where.is_nowhere()) return;
    const holding all(*this);
    table* const in_use = current();
    if (in_use != nullptr) {
        in_use->mark(wanted.where);
        in_use->gather(wanted, set_);
    }
    set_.for_each_conflict(wanted, [&](const node& one) {
        const lock_args args = one.args();
        return visit(lock_conflict{
            .where = args.where, .mode = args.mode, .owner = args.owner, .is_held = not one.is_waiting()});
    });
    if (in_use != nullptr) in_use->unmark(wanted.where);
}

// The members that an uncontended lock does not need are in range_lock_slow.hpp.
extern template class basic_range_lock<real_atomics>;

}  // namespace sluice::sync
