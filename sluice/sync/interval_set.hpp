#pragma once

#include <cstdint>

#include "sluice/sync/byte_range.hpp"

namespace sluice::sync {

class interval_set;

/// What an interval_set holds: a range, whether it is a writer's, and the number that orders equal
/// beginnings. Lives with whoever put it there. Thread safety: none of its own.
class interval_node {
public:
    interval_node() noexcept = default;
    interval_node(const interval_node&) = delete;
    interval_node& operator=(const interval_node&) = delete;

    /// What it stands for, before it is in a set.
    void describe(const byte_range& where, bool is_writer) noexcept {
        ENSURE(not is_in_set_, "a set relies on what its nodes are");
        where_ = where;
        is_writer_ = is_writer;
    }

    [[nodiscard]] const byte_range& where() const noexcept { return where_; }
    [[nodiscard]] bool is_writer() const noexcept { return is_writer_; }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] bool is_in_set() const noexcept { return is_in_set_; }

protected:
    ~interval_node() { ENSURE(not is_in_set_, "a node leaves its set before it goes"); }

private:
    friend class interval_set;

    // What follows counts in a set only, and is left as it is elsewhere: nodes are made for every lock.
    std::uint64_t number_;
    interval_node* parent_;
    interval_node* left_;
    interval_node* right_;
    // Of the subtree that begins here: the furthest last byte, of all and of the writers.
    std::uint64_t last_max_;
    std::uint64_t writer_last_max_;  // counts if has_writer_
    std::uint32_t priority_;
    bool has_writer_;

    [[no_unique_address]] byte_range where_ = byte_range::none_at(0);
    bool is_writer_;  // counts once it is described: then this byte and those behind it are one store
    bool is_in_set_ = false;
};

/// Ranges in which overlaps are found: a treap by first byte and number, which knows of each subtree how far
/// it reaches (an interval tree, Cormen et al. 14.3), and how far its writers do.
///
/// Invariants:
///   1. in order, (first byte, number) grows;
///   2. no node's priority is greater than its parent's; priorities are drawn, so the depth is O(log n);
///   3. last_max_, writer_last_max_ and has_writer_ are those of the node and its children.
/// Complexity: O(log n) expected, plus the overlaps that are visited. Allocates: nothing; nodes are the
/// caller's. Thread safety: none of its own.
class interval_set {
public:
    interval_set() noexcept = default;
    interval_set(const interval_set&) = delete;
    interval_set& operator=(const interval_set&) = delete;
    ~interval_set() { ENSURE(root_ == nullptr, "a set is empty before it goes"); }

    /// What is somewhere, and was described; a range that overlaps nothing has no place in a set.
    void insert(interval_node& node, std::uint64_t number) noexcept;
    void erase(interval_node& node) noexcept;
    /// Puts `to`, which is in no set and was described alike, where `from` is.
    void relocate(interval_node& from, interval_node& to) noexcept;
    /// Makes a writer a reader or the other way round.
    void set_writer(interval_node& node, bool is_writer) noexcept;

    [[nodiscard]] bool is_empty() const noexcept { return root_ == nullptr; }

    enum class visiting { all, writers };
    /// Calls `visit(node)` for what overlaps, by first byte and number, until it returns false. The set is
    /// not changed meanwhile. Returns whether it went through.
    template <class Visit>
    bool for_each_overlap(const byte_range& where, visiting whom, Visit&& visit) const {
        return where.is_nowhere() or visit_below(root_, where, whom, visit);
    }
    /// The same for all nodes; `visit` may erase the one it is shown.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (interval_node* node = leftmost(root_); node != nullptr;) {
            interval_node* const after = next(*node);
            visit(*node);
            node = after;
        }
    }

private:
    template <class Visit>
    static bool visit_below(interval_node* node, const byte_range& where, visiting whom, Visit& visit) {
        while (node != nullptr and reaches(*node, where, whom)) {
            if (not visit_below(node->left_, where, whom, visit)) return false;
            // What is behind begins no earlier.
            if (node->where_.first() > where.last()) return true;
            const bool is_meant = whom == visiting::all or node->is_writer_;
            if (is_meant and node->where_.overlaps(where) and not visit(*node)) return false;
            node = node->right_;
        }
        return true;
    }
    // Whether anything of the subtree ends late enough to overlap.
    [[nodiscard]] static bool reaches(const interval_node& node, const byte_range& where,
                                      visiting whom) noexcept {
        if (whom == visiting::all) return node.last_max_ >= where.first();
        return node.has_writer_ and node.writer_last_max_ >= where.first();
    }

    [[nodiscard]] static bool is_before(const interval_node& a, const interval_node& b) noexcept;
    [[nodiscard]] static interval_node* leftmost(interval_node* node) noexcept;
    [[nodiscard]] static interval_node* next(interval_node& node) noexcept;
    static void summarise(interval_node& node) noexcept;
    static void summarise_up(interval_node* node) noexcept;
    [[nodiscard]] interval_node*& link_to(interval_node& node) noexcept;
    void rotate_up(interval_node& node) noexcept;
    [[nodiscard]] std::uint32_t draw() noexcept;

    interval_node* root_ = nullptr;
    std::uint64_t random_ = 0x9e37'79b9'7f4a'7c15;
};

}  // namespace sluice::sync
