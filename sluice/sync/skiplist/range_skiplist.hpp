#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sluice/sync/byte_range.hpp"
#include "sluice/sync/skiplist/node_pool.hpp"
#include "sluice/sync/skiplist/post_directory.hpp"

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
/// Between the ranges stand *posts*, while there are few nodes: nodes without bytes, like ranges without
/// bytes but that anybody may take out, and does when they are in the way of a range. So (1) holds of them,
/// too. They make that threads which lock different places change different nodes, and a directory of them
/// tells where a search can begin. A post is linked on all its levels before its node says how many it has,
/// and only then it is taken out: by whoever marks it on the bottom level; the marks above may be others'.
/// Until then the range it was put up for is held, right behind it: so it is in nobody's way but that
/// range's.
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
        node* before = nullptr;         // on the highest level of its own
        std::uint32_t before_bell = 0;  // the bell of `before`, and its link there, at that time
        std::uint64_t before_word = 0;
    };
    /// What is in the way: a node, and what its bell said while its range was in the set.
    struct obstacle {
        node* what = nullptr;  // null: nothing
        std::uint32_t bell = 0;
    };

    /// A node for a range, and a number that is drawn.
    [[nodiscard]] typename pool_type::taken take_node(std::uint32_t& lot) noexcept {
        // Where posts tell the way, ranges need no towers.
        return nodes_.take(has_few_nodes() ? 1 : height_max, lot);
    }
    /// Puts `where`, which is somewhere, into the set, in the node of `fresh`, unless something overlaps it.
    [[nodiscard]] obstacle insert(entry& fresh, const byte_range& where) noexcept;
    /// Takes it out, rings the bell, and takes it out of every level.
    void erase(const entry& leaving) noexcept;
    /// Perhaps puts up a post in front of a range that the caller holds, which has bytes.
    void put_up_post(std::uint64_t first, std::uint32_t lot) noexcept;
    [[nodiscard]] unsigned posts() const noexcept { return posts_.count(); }

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
    // Between two nodes of a level: the first, and what its link said.
    struct gap {
        node* before;
        std::uint64_t word;
    };
    // Where a key belongs: on each level, behind the last node with a smaller one.
    struct position {
        std::array<gap, height_max> on;
        std::uint64_t
            before_last;  // where the node before it on the bottom level ends, if it is not the head
        std::uint64_t behind_first;  // of the node behind that, unmarked or the end
    };

    void search(const key& wanted, unsigned levels_min, position& at) noexcept;
    [[nodiscard]] bool search_near(const key& wanted, position& at) noexcept;
    [[nodiscard]] bool descend(const key& wanted, node* before, unsigned level, std::uint64_t word,
                               position& at, unsigned steps_max = ~0U) noexcept;
    [[nodiscard]] node* in_the_way(const byte_range& where, const position& at) noexcept;
    [[nodiscard]] bool lead_to(entry& fresh, unsigned level, position& at) noexcept;
    [[nodiscard]] bool unlink_near(const entry& leaving) noexcept;
    void unlink(const entry& leaving) noexcept;
    static void ring(node& one) noexcept;
    [[nodiscard]] bool has_few_nodes() const noexcept {
        return nodes_.nodes() <= Steps::nodes_with_posts_max;
    }
    [[nodiscard]] bool stands(post& one) noexcept;
    void make_room_for_post(std::uint32_t lot) noexcept;
    void take_out(const post& unwanted) noexcept;
    [[nodiscard]] bool mark(node& standing, unsigned levels, std::uint32_t bell) noexcept;
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
    post_directory<Atomics, Steps::posts_max> posts_;
    typename Atomics::template atomic<bool> has_fallen_posts_{false};
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
// may be of no list at all. False, too, if it is further than so many steps to the right.
//
// `word` is what the link of `before` said on this level; it was not marked. As long as it says so, `before`
// is in the list, and so is `next`; that is looked at after everything that is read of `next`, and before
// anything is concluded. Contents and links are read with acquire, so that this look cannot come too early:
// if they are of another range already, then the look sees the change that came before its node was used
// again.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::descend(const key& wanted, node* before, unsigned level,
                                             std::uint64_t word, position& at, unsigned steps_max) noexcept {
    std::uint64_t before_last = 0;  // right of the head and of posts, where this begins for an insert()
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
            if (steps_max-- == 0) return false;
            before = &next;
            before_last = next_key.last;
            word = beyond;
            continue;
        }
        at.on[level] = {.before = before, .word = word};
        if (level == 0) {
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

// A search on the bottom level, from the post before. False if there is none, or it is far away.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::search_near(const key& wanted, position& at) noexcept {
    constexpr unsigned steps_max = 8;
    post from = posts_.find(wanted.first);
    if (from.number == no_node) return false;
    if (not stands(from)) {
        has_fallen_posts_.store(true, std::memory_order_relaxed);
        return false;
    }
    return descend(wanted, &nodes_.at(from.number), 0, from.word, at, steps_max);
}

// Whether it is the same post still; then `word` becomes what its link says, which is not marked.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::stands(post& one) noexcept {
    node& what = nodes_.at(one.number);
    const std::uint64_t word = what.at(0).load(std::memory_order_acquire);
    // As in unlink_near().
    if ((what.bell.load(std::memory_order_relaxed) ^ one.bell) > 1) return false;
    if (Steps::is_marked(word) or not Steps::is_soon_after(one.word, word)) return false;
    one.word = word;
    return true;
}

// What overlaps `where`, by (1) one of its neighbours, or null.
template <class Atomics, class Steps>
auto range_skiplist<Atomics, Steps>::in_the_way(const byte_range& where, const position& at) noexcept
    -> node* {
    if (at.on[0].before != &head_.base and at.before_last >= where.first()) return at.on[0].before;
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
    own.next_free_or_levels.store(0, std::memory_order_release);
    position at;
    bool is_near = height == 1 and not where.is_empty();
    for (;; is_near = false) {
        if (not is_near or not search_near(wanted, at)) search(wanted, height, at);
        if (node* const other = in_the_way(where, at); other != nullptr) {
            // The bell rings after the mark, and the node is used again after that link has changed: if
            // neither is seen behind it, the bell is of the range in the way. acquire: for this order.
            const std::uint32_t bell = other->bell.load(std::memory_order_acquire);
            const bool is_leaving = Steps::is_marked(other->at(0).load(std::memory_order_acquire));
            const unsigned levels = other->next_free_or_levels.load(std::memory_order_acquire);
            const bool is_same = at.on[0].before->at(0).load(std::memory_order_relaxed) == at.on[0].word;
            if (not is_same or is_leaving) continue;
            if (levels == 0) return {other, bell};
            take_out({.number = Steps::next(at.on[0].word),
                      .bell = bell});  // a post is never in the way from before
            continue;
        }
        for (unsigned level = 0; level != height; ++level)
            point(own.at(level), at.on[level].word);
        if (lead_to(fresh, 0, at)) break;
    }
    for (unsigned level = 1; level != height; ++level) {
        // Nobody reaches the link on this level yet, and nobody marks it before this is over: only the holder
        // of the range does.
        while (not lead_to(fresh, level, at)) {
            search(wanted, height, at);
            for (unsigned above = level; Steps::renews_upper_links and above != height; ++above)
                point(own.at(above), at.on[above].word);
        }
    }
    if (height > this->height()) height_.store(height, std::memory_order_relaxed);
    return {};
}

// Leads a level to the node, if nothing has changed there, and notes from where. The bell is read before: if
// the link is as it was, then it was that of the same range.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::lead_to(entry& fresh, unsigned level, position& at) noexcept {
    gap& where = at.on[level];
    const std::uint32_t bell = where.before->bell.load(std::memory_order_relaxed);
    if (not lead(where.before->at(level), where.word, fresh.own.number)) return false;
    fresh.before = where.before;
    fresh.before_bell = bell;
    fresh.before_word = where.word;
    return true;
}

template <class Atomics, class Steps>
auto range_skiplist<Atomics, Steps>::key_of(const entry& one) noexcept -> key {
    return {.first = one.own.what->first.load(std::memory_order_relaxed),
            .last = one.own.what->last.load(std::memory_order_relaxed),
            .number = one.own.number};
}

// Takes a marked node out from where it was put in, on its highest level. False if the node before is gone,
// or a link has changed meanwhile.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::unlink_near(const entry& leaving) noexcept {
    const unsigned top = leaving.own.height - 1;
    link& from = leaving.before->at(top);
    std::uint64_t word = from.load(std::memory_order_acquire);
    // As the bell has not rung after this was read, it is the same range, and was in the set. The bell alone
    // would come round after 2^31 of them.
    if ((leaving.before->bell.load(std::memory_order_relaxed) ^ leaving.before_bell) > 1) return false;
    if (Steps::is_marked(word) or not Steps::is_soon_after(leaving.before_word, word)) return false;
    if (top == 0 and Steps::next(word) == leaving.own.number)
        return lead(from, word, Steps::next(leaving.own.what->at(0).load(std::memory_order_acquire)));
    position unused;
    return descend(key_of(leaving), leaving.before, top, word, unused);
}

template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::erase(const entry& leaving) noexcept {
    node& own = *leaving.own.what;
    Atomics::expect_write(leaving.before);
    for (unsigned level = leaving.own.height - 1; level != 0; --level)
        own.at(level).fetch_or(Steps::mark, std::memory_order_release);
    // release: pairs with the acquire of descend(), where it leads around the node; what was done under the
    // range is seen by whoever has it next. seq_cst: see ring().
    own.at(0).fetch_or(Steps::mark, std::memory_order_seq_cst);
    ring(own);
    if (not unlink_near(leaving)) unlink(leaving);
}

// Takes a marked node out of all its levels: where a search ends, nothing that is marked is linked on any of
// its levels between smaller and greater keys.
template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::unlink(const entry& leaving) noexcept {
    position at;
    search(key_of(leaving), leaving.own.height, at);
}

// The bell of a node counts what was given back in it; its lowest bit says that somebody may be asleep. Who
// waits sets that bit, then looks whether it still has to; who gives back marks, then looks at the bit; all
// seq_cst, so one of them sees the other.
template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::ring(node& one) noexcept {
    // seq_cst: pairs with the exchange of who waits, as said above.
    const std::uint32_t before = one.bell.load(std::memory_order_seq_cst);
    // Over a bit that was set since: whoever did that sees the mark. release: after the mark.
    one.bell.store((before | 1) + 1, std::memory_order_release);
    if ((before & 1) != 0) Atomics::wake_all(one.bell);
}

template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::put_up_post(std::uint64_t first, std::uint32_t lot) noexcept {
    const bool has_room = posts_.count() != Steps::posts_max or Steps::draws_another(lot) or
                          has_fallen_posts_.load(std::memory_order_relaxed);
    if (first == 0 or not has_few_nodes() or not has_room or not posts_.begin()) return;
    make_room_for_post(lot);
    post there = posts_.find(first);
    const bool has_one = there.number != no_node and stands(there) and
                         nodes_.at(there.number).first.load(std::memory_order_relaxed) == first;
    if (posts_.count() != Steps::posts_max and not has_one) {
        entry fresh{.own = nodes_.take()};
        node& what = *fresh.own.what;
        const obstacle none = insert(fresh, byte_range::none_at(first));
        ENSURE(none.what == nullptr, "nobody else holds what lies around the beginning of a held range");
        posts_.add(first, {.number = fresh.own.number,
                           .bell = what.bell.load(std::memory_order_relaxed) & ~1U,
                           .word = what.at(0).load(std::memory_order_relaxed)});
        // seq_cst: pairs with who waits because of it, as of a mark; from now on nobody needs to. release:
        // what was linked, for who takes it out.
        what.next_free_or_levels.store(fresh.own.height, std::memory_order_seq_cst);
        if ((what.bell.load(std::memory_order_seq_cst) & 1) != 0) Atomics::wake_all(what.bell);
    }
    posts_.end();
}

// Forgets posts that are gone, and takes out those that the directory cannot tell from others any more, being
// changed too often; and perhaps another one.
template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::make_room_for_post(std::uint32_t lot) noexcept {
    has_fallen_posts_.store(false, std::memory_order_relaxed);
    for (unsigned at = posts_.count(); at-- != 0;) {
        post one = posts_.entry(at);
        if (stands(one)) continue;
        take_out(one);
        posts_.remove(at);
    }
    if (posts_.count() != Steps::posts_max or not Steps::draws_another(lot)) return;
    const unsigned unlucky = lot / 4096 % Steps::posts_max;
    take_out(posts_.entry(unlucky));
    posts_.remove(unlucky);
}

// Takes a post out, if it is the one whose bell says that still and nobody else does.
template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::take_out(const post& unwanted) noexcept {
    node& what = nodes_.at(unwanted.number);
    // acquire: pairs with the release of put_up_post().
    const unsigned levels = what.next_free_or_levels.load(std::memory_order_acquire);
    if (not mark(what, levels, unwanted.bell)) return;
    ring(what);
    const entry leaving{.own = {.what = &what, .number = unwanted.number, .height = levels}};
    unlink(leaving);
    nodes_.give(leaving.own);
}

// Whether this was what marked it on the bottom level.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::mark(node& standing, unsigned levels, std::uint32_t bell) noexcept {
    for (unsigned level = levels; level-- != 0;) {
        std::uint64_t word = standing.at(level).load(std::memory_order_acquire);
        do {
            // As in unlink_near(): the same post, when the link said this.
            if ((standing.bell.load(std::memory_order_relaxed) ^ bell) > 1) return false;
            if (Steps::is_marked(word)) break;
            // As in erase(). If it fails, the link has changed: perhaps it is of another node now.
        } while (not standing.at(level).compare_exchange_strong(
            word, word | Steps::mark, std::memory_order_seq_cst, std::memory_order_acquire));
        if (level == 0) return not Steps::is_marked(word);
    }
    return false;
}

}  // namespace sluice::sync::skiplist
