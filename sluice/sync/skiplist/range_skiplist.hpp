#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sluice/sync/byte_range.hpp"
#include "sluice/sync/skiplist/node_pool.hpp"
#include "sluice/sync/skiplist/posts.hpp"

namespace sluice::sync::skiplist {

/// A sorted set of disjoint ranges without a lock: a skip list (Pugh 1990) whose every level is a
/// list that is changed with one compare-and-exchange (Harris 2001, Michael 2002, Fraser 2004),
/// after the range lock of T.-D. Nguyen (TU München 2024), without its defects.
///
/// Every level ends with the pool's end, which is after all keys. Nodes are ordered by (first byte,
/// last byte, number of the node): no two are equal. A node that is marked on the bottom level is
/// no longer in the set, wherever it may still be linked.
///
/// Invariants, at every moment:
///   1. the nodes on the bottom level that are not marked there do not overlap: for two neighbours,
///      the first's last byte is before the second's first one;
///   2. every level is in order, and a node that is linked on one and not marked there can be
///      reached on it from the head;
///   3. a node is linked from the bottom up, completely before it is removed; then it is marked
///      from the top down, so one that is not marked on some level is not marked below either, and
///      is in the set;
///   4. a marked link does not change until the node is used again, and then with a new tag;
///   5. a node is used again only when nothing leads to it on any level;
///   6. an entry point is a node of one level with an empty range and a state word that identifies
///      it as one; it conflicts with a request for no longer than it takes to mark it.
///
/// Linearisation points. insert(): the exchange that links the node on the bottom level. It
/// succeeds only if the link of the node before is as it was when its neighbours were read, so both
/// are still the neighbours, and by (1) no other range can conflict. A refusal: the moment the
/// conflicting node was last seen linked and unmarked. erase(): the mark on the bottom level.
///
/// Complexity: O(log n) expected in the ranges of the set. Thread safety: any
/// thread. Allocates: nothing.
template <class Atomics, class Steps = sound_steps>
class range_skiplist {
public:
    using pool_type = node_pool<Atomics>;
    using node = skiplist::node<Atomics>;
    using link = typename node::link;
    /// The largest number of its own nodes, in addition to one for each thread that is inserting.
    static constexpr unsigned posts_max = posts<Atomics, Steps>::max;

    explicit range_skiplist(pool_type& nodes) noexcept : nodes_(nodes) {}

    /// A range of the set: its node, and the node before it at insertion, as a hint for its
    /// removal.
    struct entry {
        typename pool_type::taken own;
        node* before = nullptr;
        std::uint32_t before_state = 0;  // the state word of `before`, and its link, at that time
        std::uint64_t before_word = 0;
    };
    /// A conflicting node, and its state word while its range was in the set.
    struct blocking_slot {
        node* what = nullptr;  // null: none
        std::uint32_t state_word = 0;
    };

    /// Inserts `where`, which is somewhere, in the node of `fresh`, unless a range overlaps it.
    [[nodiscard]] blocking_slot insert(entry& fresh, const byte_range& where) noexcept {
        const blocking_slot other = link_in(fresh, where);
        if (other.what == nullptr and is_maintenance_due(fresh)) [[unlikely]]
            maintain_entry_points(fresh, where.first());
        return other;
    }
    /// Removes a range, and unlinks it on every level. Calls `marked()` in between, when it is no
    /// longer in the set.
    template <class Marked>
    void erase(const entry& leaving, Marked&& marked) noexcept;

    /// Calls `visit(number)` for every node that is linked on a level. Only while no thread changes
    /// the list.
    template <class Visit>
    void for_each_linked(unsigned level, Visit&& visit) {
        for (node* one = &head_.base;;) {
            const node_number next = Steps::next(one->at(level).load(std::memory_order_relaxed));
            if (next == the_end) return;
            visit(next);
            one = &nodes_.at(next);
        }
    }
    /// Returns the number of levels that a search uses.
    [[nodiscard]] unsigned height() const noexcept { return height_.load(std::memory_order_relaxed); }

private:
    struct key {
        std::uint64_t first;
        std::uint64_t last;
        node_number number;

        [[nodiscard]] bool operator<(const key& other) const noexcept {
            if (first != other.first) [[likely]]
                return first < other.first;
            // Minus one, so that the end comes after all others.
            return last != other.last ? last < other.last : number - 1 < other.number - 1;
        }
    };
    // A gap between two nodes of a level: the first one, its link without a mark, and the end of
    // its range.
    struct gap {
        node* before;
        std::uint64_t word;
        // 0 for the head and for an entry point, which conflict with no range.
        std::uint64_t before_last;
    };
    // The position of a key: on each level, after the last node with a smaller one.
    struct position {
        gap bottom;
        std::uint64_t next_first;        // the first byte of the next node, which is
                                         // unmarked, or the end
        std::array<gap, height_max> on;  // the levels above the bottom
    };
    enum class progress { went_on, stayed, arrived, link_changed };

    using post = typename posts<Atomics, Steps>::post;
    using bits = state_word_bits;

    [[nodiscard]] blocking_slot link_in(entry& fresh, const byte_range& where) noexcept;
    void search(const key& wanted, unsigned levels_min, position& at) noexcept;
    void search_from_head(key wanted, unsigned levels_min, position& at) noexcept;
    [[nodiscard]] gap from_head(unsigned level) noexcept {
        return {.before = &head_.base,
                .word = head_.base.at(level).load(std::memory_order_acquire),
                .before_last = 0};
    }
    [[nodiscard]] gap post_before(const key& wanted) noexcept;
    [[nodiscard]] bool search_from_post(const key& wanted, position& at) noexcept;
    [[nodiscard]] bool descend(const key& wanted, unsigned levels, position& at) noexcept;
    [[nodiscard]] bool walk(const key& wanted, gap from, unsigned steps_max, position& at) noexcept;
    [[nodiscard]] progress advance(const key& wanted, unsigned level, gap& at, key& next_key) noexcept;
    [[nodiscard]] static std::uint32_t uses_of(const entry& one) noexcept {
        return bits::uses(one.own.what->state_word.load(std::memory_order_relaxed));
    }
    // Returns whether to maintain the entry points: at intervals, after an insertion.
    [[nodiscard]] static bool is_maintenance_due(const entry& fresh) noexcept {
        return uses_of(fresh) % Steps::uses_per_post == 0;
    }
    void maintain_entry_points(const entry& fresh, std::uint64_t first) noexcept;
    void set_up_post(std::uint64_t begin) noexcept;
    void take_down(const post& old) noexcept;
    [[nodiscard]] bool take_down(const typename pool_type::taken& old, std::uint64_t word,
                                 std::uint32_t state_word) noexcept;
    [[nodiscard]] node* conflicting(const byte_range& where, const position& at) noexcept;
    [[nodiscard]] bool unlink_near(const entry& leaving) noexcept;
    void unlink(const entry& leaving) noexcept;
    [[nodiscard]] static key key_of(const entry& one) noexcept;
    static void point(link& own, std::uint64_t word) noexcept;
    [[nodiscard]] static bool lead(link& from, std::uint64_t& word, node_number next) noexcept;
    [[nodiscard]] unsigned levels_in_use() noexcept;

    static constexpr unsigned without_limit = ~0U;
    // With more levels there are too many ranges between two entry points.
    static constexpr unsigned levels_with_entry_points_max = 5;

    pool_type& nodes_;
    posts<Atomics, Steps> posts_;
    // The number of levels worth searching: a hint. Written when a higher tower is added, or the
    // highest is gone.
    alignas(64) typename Atomics::template atomic<unsigned> height_{1};
    // Before all nodes, and never marked.
    alignas(64) high_tower<Atomics> head_;
};

/// Changes a link if it still has the value `word`, which then becomes the new value.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::lead(link& from, std::uint64_t& word, node_number next) noexcept {
    const std::uint64_t changed = Steps::changed(word, next);
    std::uint64_t expected = word;
    // release: pairs with the acquire loads of advance(), which thereby see a new node's contents,
    // and the writes made under a range whose node is unlinked here. acquire: this change passes on
    // earlier ones.
    if (not from.compare_exchange_strong(expected, changed, std::memory_order_acq_rel,
                                         std::memory_order_relaxed))
        return false;
    word = changed;
    return true;
}

/// Points the link of a node that is not linked on this level to the target of `word`.
template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::point(link& own, std::uint64_t word) noexcept {
    // release: a thread that reads this, and knew the node as another range, then sees that it was
    // unlinked.
    own.store(Steps::changed(own.load(std::memory_order_relaxed), Steps::next(word)),
              std::memory_order_release);
}

// A step on a level towards the position of a key, past one node at most. If a link changed
// concurrently, the node read may belong to no list at all.
//
// `at.word` is the value of the link of `at.before` on this level; it was not marked. As long as
// the link has this value, `before` is in the list, and so is `next`. That is checked after
// everything that is read of `next`, and before anything is concluded. Contents and links are read
// with acquire, so that this check cannot come too early: if they already belong to another range,
// then the check sees the change that came before its node was used again.
// used again.
template <class Atomics, class Steps>
[[gnu::always_inline]] inline auto range_skiplist<Atomics, Steps>::advance(const key& wanted, unsigned level,
                                                                           gap& at, key& next_key) noexcept
    -> progress {
    link& from = at.before->at(level);
    const node_number number = Steps::next(at.word);
    node& next = nodes_.at(number);
    next_key = {.first = next.first.load(std::memory_order_acquire),
                .last = next.last.load(std::memory_order_acquire),
                .number = number};
    const std::uint64_t beyond = next.at(level).load(std::memory_order_acquire);
    if (from.load(std::memory_order_relaxed) != at.word) return progress::link_changed;
    if (Steps::is_marked(beyond))
        return lead(from, at.word, Steps::next(beyond)) ? progress::stayed : progress::link_changed;
    if (not(next_key < wanted)) return progress::arrived;
    at = {.before = &next, .word = beyond, .before_last = next_key.last};
    return progress::went_on;
}

// Walks on the bottom level to the position of a key. Returns false if a link changed, or it is too
// far.
template <class Atomics, class Steps>
[[gnu::always_inline]] inline bool range_skiplist<Atomics, Steps>::walk(const key& wanted, gap from,
                                                                        unsigned steps_max,
                                                                        position& at) noexcept {
    key next{};
    for (;;) {
        switch (advance(wanted, 0, from, next)) {
            case progress::went_on:
                if (steps_max-- == 0) return false;
                break;
            case progress::stayed:
                break;
            case progress::link_changed:
                return false;
            case progress::arrived:
                at.bottom = from;
                at.next_first = next.first;
                return true;
        }
    }
}

// Descends from the head through `levels` levels. Returns false if a link changed.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::descend(const key& wanted, unsigned levels, position& at) noexcept {
    unsigned level = levels - 1;
    gap here = from_head(level);
    key next{};
    while (level != 0) {
        const progress how = advance(wanted, level, here, next);
        if (how == progress::link_changed) return false;
        if (how != progress::arrived) continue;
        at.on[level] = here;
        // Not marked: marks come from the top, and there was none above after this was read.
        const std::uint64_t below = here.before->at(level - 1).load(std::memory_order_acquire);
        if (here.before->at(level).load(std::memory_order_relaxed) != here.word) return false;
        here.word = below;
        --level;
    }
    if (levels > levels_with_entry_points_max) return walk(wanted, here, without_limit, at);
    // Few ranges have few levels, and then an entry point is nearer. The comparison may use another
    // range by now, but either node is before the key, or will be seen to have changed.
    const gap from = post_before(wanted);
    const bool is_nearer =
        from.before != nullptr and
        (here.before == &head_.base or here.before->first.load(std::memory_order_relaxed) <
                                           from.before->first.load(std::memory_order_relaxed));
    return walk(wanted, is_nearer ? from : here, without_limit, at);
}

// Returns the number of levels to search: one less from now on, if the two highest are empty.
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

// Returns the entry point before a key in its region, or the head if the region has none: the start
// of a walk on the bottom level. Returns null if it is gone.
template <class Atomics, class Steps>
[[gnu::always_inline]] inline auto range_skiplist<Atomics, Steps>::post_before(const key& wanted) noexcept
    -> gap {
    const std::uint64_t begin = posts_.begin_of(wanted.first);
    if (begin == 0) return from_head(0);
    constexpr gap none{.before = nullptr, .word = 0, .before_last = 0};
    const post recorded = posts_.at(begin);
    if (recorded.number == no_node) return none;
    node& own = nodes_.at(recorded.number);
    const std::uint64_t word = own.at(0).load(std::memory_order_acquire);
    if (Steps::is_marked(word)) return none;
    // The state word has the value it had when this entry point was linked, and the link will be
    // seen unchanged after this. So the node is that entry point, and in the list. acquire: for
    // this order.
    if (Steps::listens_to_posts and own.state_word.load(std::memory_order_acquire) != recorded.state_word)
        return none;
    const key own_key{.first = own.first.load(std::memory_order_acquire),
                      .last = own.last.load(std::memory_order_acquire),
                      .number = recorded.number};
    return own_key < wanted ? gap{.before = &own, .word = word, .before_last = 0} : none;
}

// Searches the bottom level alone. Returns false if there is no entry point, it is far from there,
// or a link changed.
template <class Atomics, class Steps>
[[gnu::always_inline]] inline bool range_skiplist<Atomics, Steps>::search_from_post(const key& wanted,
                                                                                    position& at) noexcept {
    constexpr unsigned steps_max = 16;
    if (height() > levels_with_entry_points_max) return false;
    const gap from = post_before(wanted);
    return from.before != nullptr and walk(wanted, from, steps_max, at);
}

// Lock-free: a walk fails only because another thread's change succeeded.
template <class Atomics, class Steps>
[[gnu::noinline]] void range_skiplist<Atomics, Steps>::search_from_head(key wanted, unsigned levels_min,
                                                                        position& at) noexcept {
    const unsigned levels = std::max(levels_in_use(), levels_min);
    while (not descend(wanted, levels, at))
        continue;
}

template <class Atomics, class Steps>
[[gnu::always_inline]] inline void range_skiplist<Atomics, Steps>::search(const key& wanted,
                                                                          unsigned levels_min,
                                                                          position& at) noexcept {
    if (levels_min != 1 or not search_from_post(wanted, at)) search_from_head(wanted, levels_min, at);
}

// Returns a range that overlaps `where`, by (1) one of its neighbours, or null.
template <class Atomics, class Steps>
auto range_skiplist<Atomics, Steps>::conflicting(const byte_range& where, const position& at) noexcept
    -> node* {
    if (at.bottom.before != &head_.base and at.bottom.before_last >= where.first()) return at.bottom.before;
    const node_number next = Steps::next(at.bottom.word);
    return next != the_end and at.next_first <= where.last() ? &nodes_.at(next) : nullptr;
}

template <class Atomics, class Steps>
auto range_skiplist<Atomics, Steps>::link_in(entry& fresh, const byte_range& where) noexcept
    -> blocking_slot {
    node& own = *fresh.own.what;
    const unsigned height = fresh.own.height;
    const key wanted{.first = where.first(), .last = where.last(), .number = fresh.own.number};
    own.first.store(wanted.first, std::memory_order_release);  // as in point()
    own.last.store(wanted.last, std::memory_order_release);
    position at;
    for (;;) {
        search(wanted, height, at);
        if (node* const other = conflicting(where, at); other != nullptr) {
            // The state word changes after the mark, and the node is used again after that link has
            // changed. If neither is seen afterwards, the state word belongs to the conflicting
            // range. acquire: for this order.
            const std::uint32_t state_word = other->state_word.load(std::memory_order_acquire);
            const std::uint64_t beyond = other->at(0).load(std::memory_order_acquire);
            const bool is_same = at.bottom.before->at(0).load(std::memory_order_relaxed) == at.bottom.word;
            if (not is_same or Steps::is_marked(beyond)) continue;
            if ((state_word & bits::post) == 0) return {other, state_word};
            // An entry point ends where it begins, so it is the node after the gap.
            (void)take_down({.what = other, .number = Steps::next(at.bottom.word)}, beyond, state_word);
            continue;
        }
        point(own.at(0), at.bottom.word);
        for (unsigned level = 1; level != height; ++level)
            point(own.at(level), at.on[level].word);
        fresh.before = at.bottom.before;
        fresh.before_state = fresh.before->state_word.load(std::memory_order_relaxed);
        if (lead(fresh.before->at(0), at.bottom.word, fresh.own.number)) break;
    }
    fresh.before_word = at.bottom.word;
    for (unsigned level = 1; level != height; ++level) {
        // No search reaches the link on this level yet, and no thread marks it before this is over:
        // only the holder of the range does.
        while (not lead(at.on[level].before->at(level), at.on[level].word, fresh.own.number)) {
            search(wanted, height, at);
            for (unsigned above = level; Steps::renews_upper_links and above != height; ++above)
                point(own.at(above), at.on[above].word);
        }
    }
    if (height > this->height()) height_.store(height, std::memory_order_relaxed);
    return {};
}

// Ensures that entry points are where the requests are.
template <class Atomics, class Steps>
[[gnu::noinline]] void range_skiplist<Atomics, Steps>::maintain_entry_points(const entry& fresh,
                                                                             std::uint64_t first) noexcept {
    if (uses_of(fresh) % Steps::uses_per_note == 0) posts_.record(first);
    const std::uint64_t begin = posts_.begin_of(first);
    if (begin == 0) return;
    const post recorded = posts_.at(begin);
    if (recorded.number != no_node) {
        node& own = nodes_.at(recorded.number);
        // If it is another range by now, one opportunity is missed.
        if (own.state_word.load(std::memory_order_relaxed) == recorded.state_word and
            own.first.load(std::memory_order_relaxed) == begin)
            return;
    }
    set_up_post(begin);
}

// Creates an entry point, unless the set has a range there.
template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::set_up_post(std::uint64_t begin) noexcept {
    entry fresh{.own = nodes_.take(1)};
    auto& state_word = fresh.own.what->state_word;
    const std::uint32_t as_post = state_word.load(std::memory_order_relaxed) | bits::post;
    state_word.store(as_post, std::memory_order_relaxed);
    if (link_in(fresh, byte_range::none_at(begin)).what != nullptr) {
        state_word.store(as_post & ~bits::post, std::memory_order_relaxed);
        nodes_.give(fresh.own);
        return;
    }
    take_down(posts_.put(begin, {.number = fresh.own.number, .state_word = as_post}));
}

// Removes an entry point, if it still exists.
template <class Atomics, class Steps>
void range_skiplist<Atomics, Steps>::take_down(const post& old) noexcept {
    if (old.number == no_node) return;
    const typename pool_type::taken its{.what = &nodes_.at(old.number), .number = old.number};
    for (;;) {
        const std::uint64_t word = its.what->at(0).load(std::memory_order_acquire);
        if (Steps::is_marked(word) or its.what->state_word.load(std::memory_order_acquire) != old.state_word)
            return;
        if (take_down(its, word, old.state_word)) return;
    }
}

// Removes a former entry point with this state word, while its link has the value `word`. The
// thread that marks it returns its node. Returns false if the link has changed.
template <class Atomics, class Steps>
bool range_skiplist<Atomics, Steps>::take_down(const typename pool_type::taken& old, std::uint64_t word,
                                               std::uint32_t state_word) noexcept {
    node& own = *old.what;
    // release: as the mark of erase().
    if (not own.at(0).compare_exchange_strong(word, word | Steps::mark, std::memory_order_acq_rel,
                                              std::memory_order_relaxed))
        return false;
    own.state_word.store(bits::signalled(state_word), std::memory_order_release);  // after the mark
    unlink({.own = old});
    nodes_.give(old);
    return true;
}

template <class Atomics, class Steps>
auto range_skiplist<Atomics, Steps>::key_of(const entry& one) noexcept -> key {
    return {.first = one.own.what->first.load(std::memory_order_relaxed),
            .last = one.own.what->last.load(std::memory_order_relaxed),
            .number = one.own.number};
}

// Removes a node of one level from where it was inserted. Returns false if the node before is gone,
// or a link has changed in the meantime.
template <class Atomics, class Steps>
[[gnu::always_inline]] inline bool range_skiplist<Atomics, Steps>::unlink_near(
    const entry& leaving) noexcept {
    if (leaving.own.height != 1) return false;
    link& from = leaving.before->at(0);
    std::uint64_t word = from.load(std::memory_order_acquire);
    // The state word has not changed after this was read, so it is the same range, and was in the
    // set. The state word alone would wrap after 2^30 ranges.
    if (not bits::is_same_range(leaving.before->state_word.load(std::memory_order_relaxed),
                                leaving.before_state))
        return false;
    if (Steps::is_marked(word) or not Steps::is_soon_after(leaving.before_word, word)) return false;
    if (Steps::next(word) == leaving.own.number)
        return lead(from, word, Steps::next(leaving.own.what->at(0).load(std::memory_order_acquire)));
    position unused;
    return walk(key_of(leaving), {.before = leaving.before, .word = word, .before_last = 0}, without_limit,
                unused);
}

// Where a search ends, no marked node is linked on any of its levels between smaller and greater
// keys: so this node is not.
template <class Atomics, class Steps>
[[gnu::noinline]] void range_skiplist<Atomics, Steps>::unlink(const entry& leaving) noexcept {
    position at;
    search(key_of(leaving), leaving.own.height, at);
}

template <class Atomics, class Steps>
template <class Marked>
[[gnu::always_inline]] inline void range_skiplist<Atomics, Steps>::erase(const entry& leaving,
                                                                         Marked&& marked) noexcept {
    node& own = *leaving.own.what;
    for (unsigned level = leaving.own.height - 1; level != 0; --level)
        own.at(level).fetch_or(Steps::mark, std::memory_order_release);
    // release: pairs with the acquire of advance(), where it unlinks the node: the next holder of
    // the range sees the writes made under it. seq_cst: see the wait for the state word.
    own.at(0).fetch_or(Steps::mark, std::memory_order_seq_cst);
    marked();
    if (not unlink_near(leaving)) unlink(leaving);
}

}  // namespace sluice::sync::skiplist
