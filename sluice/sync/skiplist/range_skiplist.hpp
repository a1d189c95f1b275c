#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sluice/sync/byte_range.hpp"
#include "sluice/sync/skiplist/node_pool.hpp"

namespace sluice::sync::skiplist {

/// Ranges that do not overlap, in their order, without a lock: a skip list (Pugh 1990) whose every level is a
/// list that is changed with one compare-and-exchange (Harris 2001, Michael 2002, Fraser 2004), after the
/// range lock of T.-D. Nguyen (TU München 2024), whose defects it does not share.
///
/// Every level ends with the pool's end, which is behind all keys. Nodes are ordered by (first byte, last
/// byte, number of the node): no two are equal. What is marked on the bottom level is not in the set any
/// more, wherever it may still be linked.
///
/// Invariants, at every moment:
///   1. the nodes on the bottom level that are not marked there do not overlap: of two neighbours, the
///      first's last byte is before the second's first one;
///   2. every level is in order, and a node that is linked on one and not marked there can be reached on it
///      from the head;
///   3. a node is linked from the bottom up, completely before it is taken out; then it is marked from the
///   top
///      down, so one that is not marked on some level is not marked below either, and is in the set;
///   4. a marked link does not change until the node is used again, and then with a new tag;
///   5. a node is used again only when nothing leads to it on any level.
///
/// Linearisation points. insert(): the exchange that leads the bottom level to the node. It succeeds only if
/// the link of the node before is as it was when its neighbours were looked at, so both are the neighbours
/// still, and by (1) nobody else can be in the way. A refusal: the moment the one in the way was last seen
/// linked and unmarked. erase(): the mark on the bottom level.
///
/// Complexity: O(log n) expected in the ranges of the set. Thread safety: any thread. Allocates: nothing.
template <class Atomics, class Steps = sound_steps>
class range_skiplist {
public:
    using pool_type = node_pool<Atomics>;
    using node = skiplist::node<Atomics>;
    using link = typename node::link;

    explicit range_skiplist(pool_type& nodes) noexcept : nodes_(nodes) {}

    /// A range of the set: its node, and where it was put, as a hint for taking it out.
    struct entry {
        typename pool_type::taken own;
        node* before = nullptr;
        std::uint32_t before_bell = 0;  // the bell of `before`, and its link, at that time
        std::uint64_t before_word = 0;
    };
    /// What is in the way: a node, and what its bell said while its range was in the set.
    struct obstacle {
        node* what = nullptr;  // null: nothing
        std::uint32_t bell = 0;
    };

    /// Puts `where`, which is somewhere, into the set, in the node of `fresh`, unless something overlaps it.
    [[nodiscard]] obstacle insert(entry& fresh, const byte_range& where) noexcept;
    /// Takes it out, and out of every level. Calls `marked()` in between, when it is out of the set.
    template <class Marked>
    void erase(const entry& leaving, Marked&& marked) noexcept;

    /// Calls `visit(number)` for every node that is linked on a level. Only while nobody changes the list.
    template <class Visit>
    void for_each_linked(unsigned level, Visit&& visit) {
        for (node* one = &head_.base;;) {
            const node_number next = Steps::next(one->at(level).load(std::memory_order_relaxed));
            if (next == the_end) return;
            visit(next);
            one = &nodes_.at(next);
        }
    }
    /// Levels that a search looks at.
    [[nodiscard]] unsigned height() const noexcept { return height_.load(std::memory_order_relaxed); }

private:
    struct key {
        std::uint64_t first;
        std::uint64_t last;
        node_number number;

        [[nodiscard]] bool operator<(const key& other) const noexcept {
            if (first != other.first) [[likely]]
                return first < other.first;
            // Less one, so that the end comes behind all others.
            return last != other.last ? last < other.last : number - 1 < other.number - 1;
        }
    };
    // Between two nodes of a level: a link, and what it said.
    struct gap {
        link* from;
        std::uint64_t word;
    };
    // Where a key belongs: on each level, behind the last node with a smaller one.
    struct position {
        std::array<gap, height_max> on;
        node* before;  // on the bottom level; the head, or an unmarked node that ends with `before_last`
        std::uint64_t before_last;
        std::uint64_t behind_first;  // of the node behind that, unmarked or the end
    };

    void search(const key& wanted, unsigned levels_min, position& at) noexcept;
    [[nodiscard]] bool descend(const key& wanted, node* before, unsigned level, std::uint64_t word,
                               position& at) noexcept;
    [[nodiscard]] node* in_the_way(const byte_range& where, const position& at) noexcept;
    [[nodiscard]] bool unlink_near(const entry& leaving) noexcept;
    [[nodiscard]] static key key_of(const entry& one) noexcept;
    static void point(link& own, std::uint64_t word) noexcept;
    [[nodiscard]] static bool lead(link& from, std::uint64_t& word, node_number next) noexcept;
    [[nodiscard]] unsigned levels_in_use() noexcept;

    pool_type& nodes_;
    // How many levels are worth looking at: a hint. Written when a higher tower comes, or the highest is
    // gone.
    alignas(64) typename Atomics::template atomic<unsigned> height_{1};
    // Before all nodes, and never marked.
    alignas(64) high_tower<Atomics> head_;
};

/// Changes a link, if it still says `word`, which then becomes what it says.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::lead(link& from, std::uint64_t& word, node_number next) noexcept {
    const std::uint64_t changed = Steps::changed(word, next);
    std::uint64_t expected = word;
    // release: pairs with the acquire loads of descend(), which thereby see a new node's contents, and what
    // was done under a range whose node is unlinked here. acquire: this change passes on what those before
    // did.
    if (not from.compare_exchange_strong(expected, changed, std::memory_order_acq_rel,
                                         std::memory_order_relaxed))
        return false;
    word = changed;
    return true;
}

/// Sets the link of a node that is not linked on this level to where `word` leads.
template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::point(link& own, std::uint64_t word) noexcept {
    // release: whoever reads this, and knew the node as another range, sees then that it was unlinked.
    own.store(Steps::changed(own.load(std::memory_order_relaxed), Steps::next(word)),
              std::memory_order_release);
}

// A walk to where a key belongs, from a node before it. False if a link changed under it; then what it saw
// may be of no list at all.
//
// `word` is what the link of `before` said on this level; it was not marked. As long as it says so, `before`
// is in the list, and so is `next`; that is looked at after everything that is read of `next`, and before
// anything is concluded. Contents and links are read with acquire, so that this look cannot come too early:
// if they are of another range already, then the look sees the change that came before its node was used
// again.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::descend(const key& wanted, node* before, unsigned level,
                                             std::uint64_t word, position& at) noexcept {
    std::uint64_t before_last = 0;
    for (;;) {
        const node_number number = Steps::next(word);
        node& next = nodes_.at(number);
        const key next_key{.first = next.first.load(std::memory_order_acquire),
                           .last = next.last.load(std::memory_order_acquire),
                           .number = number};
        const std::uint64_t beyond = next.at(level).load(std::memory_order_acquire);
        if (before->at(level).load(std::memory_order_relaxed) != word) return false;
        if (Steps::is_marked(beyond)) {
            if (not lead(before->at(level), word, Steps::next(beyond))) return false;
            continue;
        }
        if (next_key < wanted) {
            before = &next;
            before_last = next_key.last;
            word = beyond;
            continue;
        }
        at.on[level] = {.from = &before->at(level), .word = word};
        if (level == 0) {
            at.before = before;
            at.before_last = before_last;
            at.behind_first = next_key.first;
            return true;
        }
        // Not marked: marks come from the top, and there was none above after this was read.
        const std::uint64_t below = before->at(level - 1).load(std::memory_order_acquire);
        if (before->at(level).load(std::memory_order_relaxed) != word) return false;
        word = below;
        --level;
    }
}

// How many levels to look at: one less from now on, if the two highest are empty.
template <class Atomics, class Steps>
unsigned range_skiplist<Atomics, Steps>::levels_in_use() noexcept {
    const unsigned levels = height();
    if (levels == 1) return levels;
    const auto is_empty = [&](unsigned level) {
        return Steps::next(head_.base.at(level).load(std::memory_order_relaxed)) == the_end;
    };
    if (is_empty(levels - 1) and is_empty(levels - 2)) height_.store(levels - 1, std::memory_order_relaxed);
    return levels;
}

// Lock-free: a walk fails only because another thread's change succeeded.
template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::search(const key& wanted, unsigned levels_min, position& at) noexcept {
    const unsigned top = std::max(levels_in_use(), levels_min) - 1;
    while (not descend(wanted, &head_.base, top, head_.base.at(top).load(std::memory_order_acquire), at))
        continue;
}

// What overlaps `where`, by (1) one of its neighbours, or null.
template <class Atomics, class Steps>
auto range_skiplist<Atomics, Steps>::in_the_way(const byte_range& where, const position& at) noexcept
    -> node* {
    if (at.before != &head_.base and at.before_last >= where.first()) return at.before;
    const node_number behind = Steps::next(at.on[0].word);
    return behind != the_end and at.behind_first <= where.last() ? &nodes_.at(behind) : nullptr;
}

template <class Atomics, class Steps>
auto range_skiplist<Atomics, Steps>::insert(entry& fresh, const byte_range& where) noexcept -> obstacle {
    node& own = *fresh.own.what;
    const unsigned height = fresh.own.height;
    const key wanted{.first = where.first(), .last = where.last(), .number = fresh.own.number};
    own.first.store(wanted.first, std::memory_order_release);  // as in point()
    own.last.store(wanted.last, std::memory_order_release);
    position at;
    for (;;) {
        search(wanted, height, at);
        if (node* const other = in_the_way(where, at); other != nullptr) {
            // The bell rings after the mark, and the node is used again after that link has changed: if
            // neither is seen behind it, the bell is of the range in the way. acquire: for this order.
            const std::uint32_t bell = other->bell.load(std::memory_order_acquire);
            const bool is_leaving = Steps::is_marked(other->at(0).load(std::memory_order_acquire));
            const bool is_same = at.on[0].from->load(std::memory_order_relaxed) == at.on[0].word;
            if (is_same and not is_leaving) return {other, bell};
            continue;
        }
        for (unsigned level = 0; level != height; ++level)
            point(own.at(level), at.on[level].word);
        fresh.before = at.before;
        fresh.before_bell = at.before->bell.load(std::memory_order_relaxed);
        if (lead(*at.on[0].from, at.on[0].word, fresh.own.number)) break;
    }
    fresh.before_word = at.on[0].word;
    for (unsigned level = 1; level != height; ++level) {
        // Nobody reaches the link on this level yet, and nobody marks it before this is over: only the holder
        // of the range does.
        while (not lead(*at.on[level].from, at.on[level].word, fresh.own.number)) {
            search(wanted, height, at);
            for (unsigned above = level; Steps::renews_upper_links and above != height; ++above)
                point(own.at(above), at.on[above].word);
        }
    }
    if (height > this->height()) height_.store(height, std::memory_order_relaxed);
    return {};
}

template <class Atomics, class Steps>
auto range_skiplist<Atomics, Steps>::key_of(const entry& one) noexcept -> key {
    return {.first = one.own.what->first.load(std::memory_order_relaxed),
            .last = one.own.what->last.load(std::memory_order_relaxed),
            .number = one.own.number};
}

// Takes a node of one level out from where it was put in. False if the node before is gone, or a link has
// changed meanwhile.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::unlink_near(const entry& leaving) noexcept {
    if (leaving.own.height != 1) return false;
    link& from = leaving.before->at(0);
    std::uint64_t word = from.load(std::memory_order_acquire);
    // As the bell has not rung after this was read, it is the same range, and was in the set. The bell alone
    // would come round after 2^31 of them.
    if ((leaving.before->bell.load(std::memory_order_relaxed) ^ leaving.before_bell) > 1) return false;
    if (Steps::is_marked(word) or not Steps::is_soon_after(leaving.before_word, word)) return false;
    if (Steps::next(word) == leaving.own.number)
        return lead(from, word, Steps::next(leaving.own.what->at(0).load(std::memory_order_acquire)));
    position unused;
    return descend(key_of(leaving), leaving.before, 0, word, unused);
}

template <class Atomics, class Steps>
template <class Marked>
void range_skiplist<Atomics, Steps>::erase(const entry& leaving, Marked&& marked) noexcept {
    node& own = *leaving.own.what;
    for (unsigned level = leaving.own.height - 1; level != 0; --level)
        own.at(level).fetch_or(Steps::mark, std::memory_order_release);
    // release: pairs with the acquire of descend(), where it leads around the node; what was done under the
    // range is seen by whoever has it next. seq_cst: see who waits for the bell.
    own.at(0).fetch_or(Steps::mark, std::memory_order_seq_cst);
    marked();
    if (unlink_near(leaving)) return;
    // Where a search ends, nothing that is marked is linked on any of its levels between smaller and greater
    // keys, so this node is not.
    position at;
    search(key_of(leaving), leaving.own.height, at);
}

}  // namespace sluice::sync::skiplist
