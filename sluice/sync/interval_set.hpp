#pragma once

#include <cstdint>

#include "sluice/sync/byte_range.hpp"

namespace sluice::sync {

/// An element of an interval_set: a range, whether it is a writer's, and a number. The caller owns
/// it. Thread safety: none.
class interval_node {
public:
    interval_node() noexcept = default;
    interval_node(const interval_node&) = delete;
    interval_node& operator=(const interval_node&) = delete;

    /// Sets the range and the mode, while the node is in no set.
    void describe(const byte_range& where, bool is_writer) noexcept {
        ENSURE(not is_in_set_, "range changed while the node is in a set");
        where_ = where;
        is_writer_ = is_writer;
    }

    [[nodiscard]] const byte_range& where() const noexcept { return where_; }
    [[nodiscard]] bool is_writer() const noexcept { return is_writer_; }
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] bool is_in_set() const noexcept { return is_in_set_; }
    /// Returns the priority of a node that is or was in a set.
    [[nodiscard]] std::uint32_t priority() const noexcept { return priority_; }

protected:
    ~interval_node() { ENSURE(not is_in_set_, "node destroyed while it is in a set"); }

private:
    friend class interval_tree;
    template <bool is_numbered>
    friend class basic_interval_set;

    // These have a meaning only in a set. Otherwise they are not initialised, because every lock
    // constructs a node.
    std::uint64_t number_;
    interval_node* parent_;
    interval_node* left_;
    interval_node* right_;
    // Summary of the subtree: the last bytes, of all ranges and of the writers', and the numbers.
    std::uint64_t last_max_;
    std::uint64_t writer_last_max_;  // valid if has_writer_
    std::uint64_t number_min_;       // this and the next one: in a numbered set
    std::uint64_t number_max_;
    std::uint32_t priority_ : 31;
    std::uint32_t has_writer_ : 1;

protected:
    std::uint32_t spare_;  // for derived classes, in place of padding

private:
    [[no_unique_address]] byte_range where_ = byte_range::none_at(0);
    bool is_writer_;  // valid once described: then this byte and those after it are one store
    bool is_in_set_ = false;
};

/// The nodes of interest: those that overlap `where`, all of them or only the writers. A range that
/// is nowhere overlaps nothing.
enum class visiting { all, writers };
struct overlap_query {
    byte_range where;
    visiting whom = visiting::all;
};

/// The source of the priorities of nodes. They are unpredictable outside the process: otherwise a
/// client could choose the ranges so that a tree degenerates to a list. Thread safety: none.
class priority_source {
public:
    /// Seeds it with a secret of this process and the address of this object. Blocks: the first one
    /// in a process makes one system call, getrandom(2); the others make none.
    priority_source() noexcept;
    /// Returns the same priorities for the same seed. For tests.
    explicit priority_source(std::uint64_t seed) noexcept;
    priority_source(const priority_source&) = delete;
    priority_source& operator=(const priority_source&) = delete;

    /// Returns 31 random bits. Makes no system call.
    [[nodiscard]] std::uint32_t draw() noexcept;

private:
    std::uint64_t state_;  // never zero, which would stay zero
};

/// The common base of the sets of ranges: the search for overlaps in a treap by first byte and
/// number. Each subtree has the furthest last byte of all its ranges (an interval tree, Cormen et
/// al. 14.3) and of its writers.
///
/// Invariants:
///   1. in order, (first byte, number) grows;
///   2. no node's priority is greater than its parent's; priorities are random, so
///      the depth is O(log n);
///   3. the summary of a node (last_max_ to number_max_, has_writer_) is that of the
///      node and its children.
/// Complexity: O(log n) expected, plus the overlaps that are visited. Allocates: nothing. Thread
/// safety: none.
class interval_tree {
public:
    interval_tree(const interval_tree&) = delete;
    interval_tree& operator=(const interval_tree&) = delete;

    [[nodiscard]] bool is_empty() const noexcept { return root_ == nullptr; }
    /// Returns whether the set has `a` before `b`.
    [[nodiscard]] static bool is_before(const interval_node& a, const interval_node& b) noexcept {
        if (a.where_.first() != b.where_.first()) return a.where_.first() < b.where_.first();
        return a.number_ < b.number_;
    }

    /// Returns the first overlap in order, or null. Complexity: O(log n) expected.
    [[nodiscard]] interval_node* first_overlap(const overlap_query& wanted) const noexcept {
        return wanted.where.is_nowhere() ? nullptr : first_overlap_below(root_, wanted);
    }
    /// Returns the overlap after `node`, or null. Complexity: O(log n) expected; all overlaps
    /// together cost O(log n) plus their number.
    [[nodiscard]] static interval_node* next_overlap(interval_node& node,
                                                     const overlap_query& wanted) noexcept;
    /// Calls `visit(node)` for the overlaps in order, until it returns false. Returns whether it
    /// never did. `visit` does not change the set.
    template <class Visit>
    bool for_each_overlap(const overlap_query& wanted, Visit&& visit) const {
        for (interval_node* node = first_overlap(wanted); node != nullptr; node = next_overlap(*node, wanted))
            if (not visit(*node)) return false;
        return true;
    }
    /// Calls `visit(node)` for all nodes in order; `visit` may erase that node.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (interval_node* node = leftmost(root_); node != nullptr;) {
            interval_node* const after = next(*node);
            visit(*node);
            node = after;
        }
    }

protected:
    interval_tree() noexcept = default;
    ~interval_tree() { ENSURE(root_ == nullptr, "set destroyed while it has nodes"); }

    // Returns whether a range of the subtree ends late enough to overlap.
    [[nodiscard]] static bool reaches(const interval_node& node, const overlap_query& wanted) noexcept {
        if (wanted.whom == visiting::all) return node.last_max_ >= wanted.where.first();
        return node.has_writer_ != 0 and node.writer_last_max_ >= wanted.where.first();
    }
    [[nodiscard]] static bool is_overlap(const interval_node& node, const overlap_query& wanted) noexcept {
        return (wanted.whom == visiting::all or node.is_writer_) and node.where_.overlaps(wanted.where);
    }

    interval_node* root_ = nullptr;

private:
    [[nodiscard]] static interval_node* first_overlap_below(interval_node* node,
                                                            const overlap_query& wanted) noexcept;
    [[nodiscard]] static interval_node* leftmost(interval_node* node) noexcept;
    [[nodiscard]] static interval_node* next(interval_node& node) noexcept;
};

/// A set of ranges. If it is numbered, each subtree also has its smallest and its largest number.
/// Complexity: O(log n) expected, unless stated otherwise. Otherwise as interval_tree.
template <bool is_numbered>
class basic_interval_set : public interval_tree {
public:
    /// Inserts a described node, whose range can overlap something. The priority is random; a node
    /// that comes from another set may keep its own.
    void insert(interval_node& node, std::uint64_t number, std::uint32_t priority) noexcept;
    void erase(interval_node& node) noexcept;
    /// Replaces `from` by `to`, which is in no set and was described alike.
    void relocate(interval_node& from, interval_node& to) noexcept;
    /// Makes a writer a reader or the reverse.
    void set_writer(interval_node& node, bool is_writer) noexcept;

    // Complexity of these: O(log n) expected where the ranges are equal, or where all overlaps have
    // such a number, and if nothing overlaps; otherwise O(log n) plus the overlaps at most.

    /// Returns the overlap with the largest number below `before` for which
    /// `is_meant(node)`, or null.
    template <class IsMeant>
        requires is_numbered
    [[nodiscard]] interval_node* latest_overlap(const overlap_query& wanted, std::uint64_t before,
                                                IsMeant&& is_meant) const {
        interval_node* best = nullptr;
        find_latest(root_, wanted, before, is_meant, best);
        return best;
    }
    /// Returns the overlap with the smallest number above `after`, or null.
    [[nodiscard]] interval_node* earliest_overlap(const overlap_query& wanted,
                                                  std::uint64_t after) const noexcept
        requires is_numbered
    {
        interval_node* best = nullptr;
        find_earliest(root_, wanted, after, best);
        return best;
    }

private:
    template <class IsMeant>
    static void find_latest(interval_node* node, const overlap_query& wanted, std::uint64_t before,
                            IsMeant& is_meant, interval_node*& best) {
        while (node != nullptr and reaches(*node, wanted) and node->number_min_ < before and
               (best == nullptr or node->number_max_ > best->number_)) {
            if (node->where_.first() > wanted.where.last()) {
                node = node->left_;  // the right ones begin no earlier
                continue;
            }
            const bool is_later = best == nullptr or node->number_ > best->number_;
            if (is_later and node->number_ < before and is_overlap(*node, wanted) and is_meant(*node))
                best = node;
            // The child with the largest number first: an overlap there excludes the most nodes.
            const bool is_right_first =
                node->left_ == nullptr or
                (node->right_ != nullptr and node->right_->number_max_ > node->left_->number_max_);
            find_latest(is_right_first ? node->right_ : node->left_, wanted, before, is_meant, best);
            node = is_right_first ? node->left_ : node->right_;
        }
    }
    static void find_earliest(interval_node* node, const overlap_query& wanted, std::uint64_t after,
                              interval_node*& best) noexcept;

    static void summarise(interval_node& node) noexcept;
    static void summarise_up(interval_node* node) noexcept;
    [[nodiscard]] interval_node*& link_to(interval_node& node) noexcept;
    void rotate_up(interval_node& node) noexcept;
};

extern template class basic_interval_set<false>;
extern template class basic_interval_set<true>;

using interval_set = basic_interval_set<false>;
using numbered_interval_set = basic_interval_set<true>;

}  // namespace sluice::sync
