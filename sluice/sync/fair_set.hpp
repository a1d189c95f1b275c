#pragma once

#include <cstddef>

#include "sluice/sync/lock_node.hpp"

namespace sluice::sync {

/// The ranges of a lock that may conflict: the held ones, the waiting ones, and the node that each
/// waiting one watches. (Wait order by overlap: Kara 2013, Bueso 2017; one watched node instead of
/// a count: own design.)
///
/// Invariants:
///   1. Nodes are numbered in order of arrival. 0: the node is held, and was there before all that
///      it conflicts with, or overtook them.
///   2. A node waits while a conflicting one with a smaller number is held or waits. So two held
///      nodes never conflict.
///   3. A waiting node watches one such node: it is in that node's list of watchers.
///   4. It watches the latest one that waits; if none waits, one that is held.
///   5. Any change that may end the conflict of a node with its watchers (it leaves, is downgraded,
///      shrunk or split) takes its list, and each of them is checked again. A wait ends only there.
///
/// Invariant 4 bounds the cost of a wait. When the watched node leaves, all earlier conflicting
/// ones have left before it was granted. So a node is checked again at most once for each of its
/// blockers that can be held at the same time, and once for each cancelled one that it watched.
/// Waiting writers of one range form a chain, in which each release grants the next one.
/// Complexity: O(log n) expected in the nodes of the set for each search for a node to watch, at
/// most plus the overlaps (interval_set.hpp); a release is one search for each watcher. Allocates:
/// nothing. Thread safety: guarded by a mutex.
template <class Atomics>
class fair_set {
public:
    using node = lock_node<Atomics>;
    using ended = ended_waits<Atomics>;

    /// `overtakes_max`: see range_lock_options.
    explicit fair_set(std::uint32_t overtakes_max) noexcept : overtakes_max_(overtakes_max) {}

    [[nodiscard]] bool is_empty() const noexcept { return held_.is_empty() and waiting_.is_empty(); }

    /// Calls `visit(node)` for each node that conflicts with `wanted`, by first byte, until it
    /// returns false.
    template <class Visit>
    void for_each_conflict(const lock_args& wanted, Visit&& visit) const;
    /// Calls `visit(node)` for all nodes; `visit` may remove that node from the set.
    template <class Visit>
    void for_each(Visit&& visit) const {
        held_.for_each([&](interval_node& one) { visit(node_of(one)); });
        waiting_.for_each([&](interval_node& one) { visit(node_of(one)); });
    }
    [[nodiscard]] bool has_waiters_over(const byte_range& where) const noexcept {
        return waiting_.first_overlap({.where = where}) != nullptr;
    }

    /// Inserts a described node as the latest. Returns whether it is held. Otherwise it waits if
    /// `may_wait`, and is not inserted if not.
    [[nodiscard]] bool enter(node& fresh, bool may_wait) noexcept;
    /// Inserts a held node that was there before all that it conflicts with.
    void admit(node& held) noexcept { hold(held, earlier_than_all); }
    /// Removes a held node that has no watchers.
    void erase(node& one) noexcept {
        ENSURE(not one.is_waiting() and one.watchers == nullptr, "node erased while it has watchers");
        held_.erase(one);
    }
    /// Removes a node that is held or waits, and checks its watchers again.
    void leave(node& leaving, ended& over) noexcept;
    /// Ends a wait. Returns false if it was over.
    [[nodiscard]] bool cancel(node& waiting, ended& granted, ended& cancelled) noexcept;
    [[nodiscard]] std::size_t cancel_all(const void* owner, ended& granted, ended& cancelled) noexcept;

    // Changes by a holder. The node is in the set.
    void downgrade(node& held, ended& over) noexcept;
    [[nodiscard]] bool try_upgrade(node& held) noexcept;
    void shrink(node& held, const byte_range& kept, ended& over) noexcept;
    void split(node& held, const byte_range& kept, node& rest, const byte_range& rest_where,
               ended& over) noexcept;
    void relocate(node& from, node& to) noexcept;

private:
    // Numbers that no arrival has.
    static constexpr std::uint64_t earlier_than_all = 0;
    static constexpr std::uint64_t later_than_all = ~std::uint64_t{0};
    static constexpr std::uint32_t without_limit = ~std::uint32_t{0};  // of range_lock_options

    [[nodiscard]] static node& node_of(interval_node& one) noexcept { return static_cast<node&>(one); }
    [[nodiscard]] static overlap_query conflicts_of(const lock_args& wanted) noexcept {
        return {.where = wanted.where,
                .whom = wanted.mode == lock_mode::shared ? visiting::writers : visiting::all};
    }
    // Returns the first conflict of a set, from `at` on.
    [[nodiscard]] static node* skip_allowed(interval_node* at, const overlap_query& overlaps,
                                            const lock_args& wanted) noexcept {
        while (at != nullptr and not node_of(*at).blocks_later(wanted))
            at = interval_tree::next_overlap(*at, overlaps);
        return static_cast<node*>(at);
    }

    void hold(node& one, std::uint64_t number) noexcept {
        one.watchers = nullptr;
        one.watch_link = nullptr;
        held_.insert(one, number, priorities_.draw());
    }
    // Returns a held node that a request with that number must wait for, or null. A later one that
    // is held while an earlier one waits is a reader that overlaps its own owner's writer.
    [[nodiscard]] node* holder_against(const lock_args& wanted, std::uint64_t number) const noexcept {
        const overlap_query overlaps = conflicts_of(wanted);
        interval_node* at = held_.first_overlap(overlaps);
        while (at != nullptr and (at->number() > number or not node_of(*at).blocks_later(wanted)))
            at = interval_tree::next_overlap(*at, overlaps);
        return static_cast<node*>(at);
    }
    [[nodiscard]] node* blocker_of(const lock_args& wanted, std::uint64_t number) const noexcept;

    // Lists of watchers.
    static void link(node& one, node*& list) noexcept {
        one.next = list;
        if (list != nullptr) list->watch_link = &one.next;
        one.watch_link = &list;
        list = &one;
    }
    static void unlink(node& one) noexcept {
        *one.watch_link = one.next;
        if (one.next != nullptr) one.next->watch_link = one.watch_link;
    }
    // Prepends `from` to `to`. Complexity: linear in `from`; constant if `to` is empty.
    static void move_all(node*& from, node*& to) noexcept {
        if (from == nullptr) return;
        if (to != nullptr) {
            node* last = from;
            while (last->next != nullptr)
                last = last->next;
            last->next = to;
            to->watch_link = &last->next;
        }
        to = std::exchange(from, nullptr);
        to->watch_link = &to;
    }
    void recheck(node*& watchers, ended& over) noexcept;
    void grant(node& waiting, std::uint64_t number, ended& over) noexcept;
    void take_out(node& waiting, node*& watchers) noexcept;

    void replace(node& held, const byte_range& where) noexcept;
    [[nodiscard]] bool may_overtake(const lock_args& wanted, std::uint64_t number) const noexcept;
    void count_overtaken(const node& by, std::uint64_t number) noexcept;
    void let_overtake(const byte_range& where, ended& over) noexcept;

    interval_set held_;
    numbered_interval_set waiting_;
    priority_source priorities_;
    std::uint64_t arrivals_ = 0;
    std::uint32_t overtakes_max_;
};

template <class Atomics>
template <class Visit>
void fair_set<Atomics>::for_each_conflict(const lock_args& wanted, Visit&& visit) const {
    const overlap_query overlaps = conflicts_of(wanted);
    node* held = skip_allowed(held_.first_overlap(overlaps), overlaps, wanted);
    node* waiting = skip_allowed(waiting_.first_overlap(overlaps), overlaps, wanted);
    while (held != nullptr or waiting != nullptr) {
        const bool is_held_next =
            waiting == nullptr or (held != nullptr and not interval_tree::is_before(*waiting, *held));
        node*& at = is_held_next ? held : waiting;
        if (not visit(*at)) return;
        at = skip_allowed(interval_tree::next_overlap(*at, overlaps), overlaps, wanted);
    }
}

// Returns a node that a request with that number must wait for, by the rule of invariant 4, or
// null.
template <class Atomics>
auto fair_set<Atomics>::blocker_of(const lock_args& wanted, std::uint64_t number) const noexcept -> node* {
    interval_node* const latest = waiting_.latest_overlap(
        conflicts_of(wanted), number, [&](interval_node& one) { return node_of(one).blocks_later(wanted); });
    return latest != nullptr ? static_cast<node*>(latest) : holder_against(wanted, number);
}

template <class Atomics>
bool fair_set<Atomics>::enter(node& fresh, bool may_wait) noexcept {
    const lock_args wanted = fresh.args();
    node* const blocker = blocker_of(wanted, later_than_all);
    const bool may = blocker == nullptr or may_overtake(wanted, later_than_all);
    if (not may and not may_wait) return false;
    ++arrivals_;
    if (may) {
        if (blocker != nullptr) count_overtaken(fresh, later_than_all);
        hold(fresh, blocker == nullptr ? arrivals_ : earlier_than_all);
        return true;
    }
    fresh.watchers = nullptr;
    fresh.overtaken() = 0;
    waiting_.insert(fresh, arrivals_, priorities_.draw());
    link(fresh, blocker->watchers);
    return false;
}

template <class Atomics>
void fair_set<Atomics>::grant(node& waiting, std::uint64_t number, ended& over) noexcept {
    unlink(waiting);
    waiting.watch_link = nullptr;
    waiting_.erase(waiting);
    held_.insert(waiting, number, waiting.priority());  // its watchers keep watching it
    over.add(waiting);
}

// Grants the nodes of a list whose watched node has left or changed, or finds them another one.
template <class Atomics>
void fair_set<Atomics>::recheck(node*& watchers, ended& over) noexcept {
    while (watchers != nullptr) {
        node& one = *watchers;
        node* const blocker = blocker_of(one.args(), one.number());
        if (blocker == nullptr) {
            grant(one, one.number(), over);
        } else {
            unlink(one);
            link(one, blocker->watchers);
        }
    }
}

// Removes a waiting node that was not granted. Moves its watchers to a list, to check them again.
template <class Atomics>
void fair_set<Atomics>::take_out(node& waiting, node*& watchers) noexcept {
    unlink(waiting);
    waiting_.erase(waiting);
    move_all(waiting.watchers, watchers);
}

template <class Atomics>
void fair_set<Atomics>::leave(node& leaving, ended& over) noexcept {
    node* watchers = nullptr;
    if (leaving.is_waiting()) {
        take_out(leaving, watchers);
    } else {
        held_.erase(leaving);
        move_all(leaving.watchers, watchers);
    }
    recheck(watchers, over);
    let_overtake(leaving.where(), over);
}

// Returns whether no held node conflicts, and no earlier waiting one was overtaken too often.
template <class Atomics>
bool fair_set<Atomics>::may_overtake(const lock_args& wanted, std::uint64_t number) const noexcept {
    if (overtakes_max_ == 0 or holder_against(wanted, number) != nullptr) return false;
    if (overtakes_max_ == without_limit) return true;
    return waiting_.for_each_overlap(conflicts_of(wanted), [&](interval_node& other) {
        node& waiting = node_of(other);
        return waiting.number() >= number or not waiting.blocks_later(wanted) or
               waiting.overtaken() < overtakes_max_;
    });
}

// Counts an overtake of the conflicting nodes before `number`. They will wait for `by` as if it had
// come before them.
template <class Atomics>
void fair_set<Atomics>::count_overtaken(const node& by, std::uint64_t number) noexcept {
    (void)waiting_.for_each_overlap({.where = by.where()}, [&](interval_node& other) {
        node& waiting = node_of(other);
        if (waiting.number() < number and by.blocks_later(waiting.args())) ++waiting.overtaken();
        return true;
    });
}

// Grants, in order of arrival, the nodes that wait for part of `where`, where something changed,
// and that conflict with no held node.
template <class Atomics>
void fair_set<Atomics>::let_overtake(const byte_range& where, ended& over) noexcept {
    if (overtakes_max_ == 0) return;
    std::uint64_t number = earlier_than_all;
    while (interval_node* const next = waiting_.earliest_overlap({.where = where}, number)) {
        node& one = node_of(*next);
        number = one.number();
        if (not may_overtake(one.args(), number)) continue;
        count_overtaken(one, number);
        grant(one, earlier_than_all, over);
    }
}

template <class Atomics>
bool fair_set<Atomics>::cancel(node& waiting, ended& granted, ended& cancelled) noexcept {
    if (not waiting.is_in_set() or not waiting.is_waiting()) return false;
    leave(waiting, granted);
    cancelled.add(waiting);
    return true;
}

// All leave before any watcher is checked again, so that none is granted because another one left.
template <class Atomics>
std::size_t fair_set<Atomics>::cancel_all(const void* owner, ended& granted, ended& cancelled) noexcept {
    std::size_t count = 0;
    node* watchers = nullptr;
    waiting_.for_each([&](interval_node& one) {
        node& waiting = node_of(one);
        if (waiting.owner != owner) return;
        take_out(waiting, watchers);
        cancelled.add(waiting);
        ++count;
    });
    recheck(watchers, granted);
    if (count != 0) let_overtake(byte_range::whole(), granted);
    return count;
}

template <class Atomics>
void fair_set<Atomics>::downgrade(node& held, ended& over) noexcept {
    if (not held.is_writer()) return;
    held_.set_writer(held, false);
    node* watchers = nullptr;
    move_all(held.watchers, watchers);
    recheck(watchers, over);
    let_overtake(held.where(), over);
}

template <class Atomics>
bool fair_set<Atomics>::try_upgrade(node& held) noexcept {
    const bool is_alone = not has_waiters_over(held.where()) and
                          held_.for_each_overlap({.where = held.where()},
                                                 [&](const interval_node& one) { return &one == &held; });
    if (is_alone) held_.set_writer(held, true);
    return is_alone;
}

template <class Atomics>
void fair_set<Atomics>::replace(node& held, const byte_range& where) noexcept {
    const std::uint64_t number = held.number();
    held_.erase(held);
    held.interval_node::describe(where, held.is_writer());
    held_.insert(held, number, held.priority());
}

template <class Atomics>
void fair_set<Atomics>::shrink(node& held, const byte_range& kept, ended& over) noexcept {
    const byte_range before = held.where();
    replace(held, kept);
    node* watchers = nullptr;
    move_all(held.watchers, watchers);
    recheck(watchers, over);
    let_overtake(before, over);
}

// An empty request between both parts waits for neither from now on.
template <class Atomics>
void fair_set<Atomics>::split(node& held, const byte_range& kept, node& rest, const byte_range& rest_where,
                              ended& over) noexcept {
    const std::uint64_t number = held.number();
    replace(held, kept);
    lock_args others = held.args();
    others.where = rest_where;
    rest.describe(others);
    hold(rest, number);
    node* watchers = nullptr;
    move_all(held.watchers, watchers);
    recheck(watchers, over);
}

template <class Atomics>
void fair_set<Atomics>::relocate(node& from, node& to) noexcept {
    ENSURE(not from.is_waiting(), "a waiting node cannot be moved");
    held_.relocate(from, to);
    to.watch_link = nullptr;
    to.watchers = from.watchers;
    from.watchers = nullptr;
    if (to.watchers != nullptr) to.watchers->watch_link = &to.watchers;
}

}  // namespace sluice::sync
