#pragma once

#include <cstddef>

#include "sluice/sync/lock_node.hpp"

namespace sluice::sync {

/// Who holds and who waits, and who waits for whom: the ranges of a lock, or those of them about which there
/// is, or may be, a dispute. (Interval tree with conflict counts: Kara 2013, Bueso 2017; own design.)
///
/// Invariants:
///   1. each node has the number of its arrival; 0 if it holds and came before all those here that wait for
///      it, or overtook them;
///   2. `blockers` of a node is how many nodes of the set are in its way: they have a smaller number;
///   3. a node is held if that is 0 and it was not cancelled; so two that are held never conflict;
///   4. a wait ends once: whoever takes `blockers` to 0, or the node out of the set, puts it into its list of
///      ended waits.
/// Complexity: O(log n) expected in the nodes of the set, plus those that overlap. Allocates: nothing.
/// Thread safety: none of its own: a latch guards it.
template <class Atomics>
class fair_set {
public:
    using node = lock_node<Atomics>;
    using ended = ended_waits<Atomics>;

    /// `overtakes_max`: of range_lock_options.
    explicit fair_set(std::uint32_t overtakes_max) noexcept : overtakes_max_(overtakes_max) {}

    [[nodiscard]] bool is_empty() const noexcept { return set_.is_empty(); }

    /// Calls `visit(node)` for what is in the way of `wanted`, by first byte, until it returns false.
    template <class Visit>
    void for_each_conflict(const lock_args& wanted, Visit&& visit) const {
        const auto whom =
            wanted.mode == lock_mode::shared ? interval_set::visiting::writers : interval_set::visiting::all;
        (void)set_.for_each_overlap(wanted.where, whom, [&](interval_node& one) {
            return not node_of(one).is_in_the_way_of(wanted) or visit(node_of(one));
        });
    }
    /// Calls `visit(node)` for all, which may take the one it is shown out of the set.
    template <class Visit>
    void for_each(Visit&& visit) const {
        set_.for_each([&](interval_node& one) { visit(node_of(one)); });
    }
    [[nodiscard]] bool has_waiters_over(const byte_range& where) const noexcept {
        return not set_.for_each_overlap(where, interval_set::visiting::all,
                                         [](interval_node& one) { return node_of(one).blockers == 0; });
    }

    /// Takes in what was described, and asked for last: held if it says true. Otherwise it waits if it may,
    /// and is left out if not, with `blockers` 0.
    [[nodiscard]] bool enter(node& fresh, bool may_wait) noexcept;
    /// Takes in what is held and was there before all that it conflicts with.
    void admit(node& held) noexcept { set_.insert(held, 0); }
    /// Takes out what was not granted anything since, or holds what nobody has come to wait for.
    void erase(node& one) noexcept { set_.erase(one); }
    /// Takes out what is held, or waits, and unblocks those behind it.
    void leave(node& leaving, ended& over) noexcept {
        visit_blocked(leaving, [&](node& behind) { unblock(behind, over); });
        set_.erase(leaving);
        let_overtake(leaving.where(), over);
    }
    /// Ends a wait; false if it was over.
    [[nodiscard]] bool cancel(node& waiting, ended& granted, ended& cancelled) noexcept;
    [[nodiscard]] std::size_t cancel_all(const void* owner, ended& granted, ended& cancelled) noexcept;

    // What holders do; all are in the set.
    void downgrade(node& held, ended& over) noexcept;
    [[nodiscard]] bool try_upgrade(node& held) noexcept;
    void shrink(node& held, const byte_range& kept, ended& over) noexcept;
    void split(node& held, const byte_range& kept, node& rest, const byte_range& rest_where,
               ended& over) noexcept;
    void relocate(node& from, node& to) noexcept { set_.relocate(from, to); }

private:
    [[nodiscard]] static node& node_of(interval_node& one) noexcept { return static_cast<node&>(one); }

    // Calls `visit(node)` for everyone behind `one` who counts it as a blocker.
    template <class Visit>
    void visit_blocked(const node& one, Visit&& visit) const {
        const auto whom = one.is_writer() ? interval_set::visiting::all : interval_set::visiting::writers;
        (void)set_.for_each_overlap(one.where(), whom, [&](interval_node& other) {
            node& behind = node_of(other);
            if (behind.blockers != 0 and behind.number() > one.number() and
                one.is_in_the_way_of(behind.args()))
                visit(behind);
            return true;
        });
    }
    static void unblock(node& behind, ended& over) noexcept {
        if (--behind.blockers == 0 and not behind.is_cancelled) over.add(behind);
    }
    void replace(node& held, const byte_range& where) noexcept;
    [[nodiscard]] bool may_overtake(const node& one) const noexcept;
    void overtake(node& one, std::uint64_t number) noexcept;
    void let_overtake(const byte_range& where, ended& over) noexcept;

    interval_set set_;
    std::uint64_t arrivals_ = 0;
    std::uint32_t overtakes_max_;
};

template <class Atomics>
bool fair_set<Atomics>::enter(node& fresh, bool may_wait) noexcept {
    std::uint32_t blockers = 0;
    for_each_conflict(fresh.args(), [&](const node&) { return ++blockers != 0; });
    if (blockers == 0) {
        set_.insert(fresh, ++arrivals_);
    } else if (may_overtake(fresh)) {
        overtake(fresh, ++arrivals_);
        set_.insert(fresh, 0);
    } else if (may_wait) {
        fresh.blockers = blockers;
        set_.insert(fresh, ++arrivals_);
        return false;
    } else {
        return false;
    }
    return true;
}

// Whether nobody who holds is in the way, and nobody who waits was overtaken too often.
template <class Atomics>
bool fair_set<Atomics>::may_overtake(const node& one) const noexcept {
    if (overtakes_max_ == 0) return false;
    bool may = true;
    for_each_conflict(one.args(), [&](const node& other) {
        if (other.number() > one.number() and one.is_in_set()) return true;  // it came later
        may = other.blockers != 0 and other.overtaken < overtakes_max_;
        return may;
    });
    return may;
}

// Those that came before `number` and wait, wait for `one` from now on as if it had come before them.
template <class Atomics>
void fair_set<Atomics>::overtake(node& one, std::uint64_t number) noexcept {
    (void)set_.for_each_overlap(one.where(), interval_set::visiting::all, [&](interval_node& other) {
        node& waiting = node_of(other);
        if (waiting.blockers != 0 and waiting.number() < number and one.is_in_the_way_of(waiting.args())) {
            ++waiting.blockers;
            ++waiting.overtaken;
        }
        return true;
    });
}

// Grants, in the order of arrival, what waits for part of `where`, which somebody has left, and for nothing
// that is held.
template <class Atomics>
void fair_set<Atomics>::let_overtake(const byte_range& where, ended& over) noexcept {
    if (overtakes_max_ == 0) return;
    node* first = nullptr;  // of those that wait, by number; `next` is theirs until their wait is over
    (void)set_.for_each_overlap(where, interval_set::visiting::all, [&](interval_node& other) {
        node& waiting = node_of(other);
        if (waiting.blockers == 0 or waiting.is_cancelled) return true;
        node** link = &first;
        while (*link != nullptr and (*link)->number() < waiting.number())
            link = &(*link)->next;
        waiting.next = std::exchange(*link, &waiting);
        return true;
    });
    while (first != nullptr) {
        node& one = *std::exchange(first, first->next);
        if (not may_overtake(one)) continue;
        overtake(one, one.number());
        one.blockers = 0;
        set_.erase(one);
        set_.insert(one, 0);
        over.add(one);
    }
}

template <class Atomics>
bool fair_set<Atomics>::cancel(node& waiting, ended& granted, ended& cancelled) noexcept {
    if (not waiting.is_in_set() or waiting.blockers == 0) return false;
    waiting.is_cancelled = true;
    leave(waiting, granted);
    waiting.blockers = 0;
    cancelled.add(waiting);
    return true;
}

template <class Atomics>
std::size_t fair_set<Atomics>::cancel_all(const void* owner, ended& granted, ended& cancelled) noexcept {
    std::size_t count = 0;
    for_each([&](node& one) {
        if (one.owner != owner or one.blockers == 0) return;
        one.is_cancelled = true;  // so that none is granted when another leaves
        cancelled.add(one);
        ++count;
    });
    for (node* one = cancelled.first(); one != nullptr; one = one->next) {
        leave(*one, granted);
        one->blockers = 0;
    }
    return count;
}

template <class Atomics>
void fair_set<Atomics>::downgrade(node& held, ended& over) noexcept {
    if (not held.is_writer()) return;
    visit_blocked(held, [&](node& behind) {
        if (not behind.is_writer()) unblock(behind, over);
    });
    set_.set_writer(held, false);
    let_overtake(held.where(), over);
}

template <class Atomics>
bool fair_set<Atomics>::try_upgrade(node& held) noexcept {
    const bool is_alone = set_.for_each_overlap(held.where(), interval_set::visiting::all,
                                                [&](const interval_node& one) { return &one == &held; });
    if (is_alone) set_.set_writer(held, true);
    return is_alone;
}

template <class Atomics>
void fair_set<Atomics>::replace(node& held, const byte_range& where) noexcept {
    const std::uint64_t number = held.number();
    set_.erase(held);
    held.interval_node::describe(where, held.is_writer());
    set_.insert(held, number);
}

template <class Atomics>
void fair_set<Atomics>::shrink(node& held, const byte_range& kept, ended& over) noexcept {
    visit_blocked(held, [&](node& behind) {
        if (not behind.where().overlaps(kept)) unblock(behind, over);
    });
    const byte_range before = held.where();
    replace(held, kept);
    let_overtake(before, over);
}

// A request that waits for both parts from now on counts both; one between them, without bytes, neither.
template <class Atomics>
void fair_set<Atomics>::split(node& held, const byte_range& kept, node& rest, const byte_range& rest_where,
                              ended& over) noexcept {
    visit_blocked(held, [&](node& behind) {
        const bool waits_for_kept = behind.where().overlaps(kept);
        const bool waits_for_rest = behind.where().overlaps(rest_where);
        if (waits_for_kept and waits_for_rest)
            ++behind.blockers;
        else if (not waits_for_kept and not waits_for_rest)
            unblock(behind, over);
    });
    replace(held, kept);
    lock_args others = held.args();
    others.where = rest_where;
    rest.describe(others);
    set_.insert(rest, held.number());
}

}  // namespace sluice::sync
