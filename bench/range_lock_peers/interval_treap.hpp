#pragma once

#include <cstdint>
#include <utility>

#include "bench/range_lock_peers/peer.hpp"

namespace sluice::bench::range_locks {

/// A range in an interval_treap.
struct interval_treap_node {
    extent where;
    std::uint64_t end_max = 0;  // in the subtree
    interval_treap_node* parent = nullptr;
    interval_treap_node* left = nullptr;
    interval_treap_node* right = nullptr;
    std::uint32_t priority = 0;
};

/// Ranges, also equal and overlapping ones, sorted by their first byte, with a search for overlaps:
/// the interval tree of the kernel's lib/interval_tree with another balancing (random priorities
/// instead of colours). Complexity: O(log n) expected, plus the overlaps.
class interval_treap {
public:
    using node = interval_treap_node;

    void insert(node& fresh, const extent& where) noexcept {
        node* above = nullptr;
        node** link = &root_;
        while (*link != nullptr) {
            above = *link;
            if (above->end_max < where.end) above->end_max = where.end;
            link = where.begin < above->where.begin ? &above->left : &above->right;
        }
        fresh.where = where;
        fresh.end_max = where.end;
        fresh.parent = above;
        fresh.left = fresh.right = nullptr;
        fresh.priority = draw();
        *link = &fresh;
        while (fresh.parent != nullptr and fresh.parent->priority < fresh.priority)
            rotate_up(fresh);
    }

    void erase(node& leaving) noexcept {
        while (leaving.left != nullptr and leaving.right != nullptr)
            rotate_up(leaving.left->priority > leaving.right->priority ? *leaving.left : *leaving.right);
        node* const child = leaving.left != nullptr ? leaving.left : leaving.right;
        link_to(leaving) = child;
        if (child != nullptr) child->parent = leaving.parent;
        for (node* above = leaving.parent; above != nullptr; above = above->parent) {
            const std::uint64_t before = above->end_max;
            summarise(*above);
            if (above->end_max == before) break;
        }
    }

    /// Calls `visit(node)` for each overlap.
    template <class Visit>
    void for_each_overlap(const extent& where, Visit&& visit) const {
        visit_below(root_, where, visit);
    }

private:
    template <class Visit>
    static void visit_below(node* at, const extent& where, Visit& visit) {
        while (at != nullptr and at->end_max > where.begin) {
            visit_below(at->left, where, visit);
            if (at->where.begin >= where.end) return;
            if (at->where.end > where.begin) visit(*at);
            at = at->right;
        }
    }

    static void summarise(node& one) noexcept {
        one.end_max = one.where.end;
        for (const node* child : {one.left, one.right})
            if (child != nullptr and child->end_max > one.end_max) one.end_max = child->end_max;
    }
    [[nodiscard]] node*& link_to(node& one) noexcept {
        if (one.parent == nullptr) return root_;
        return one.parent->left == &one ? one.parent->left : one.parent->right;
    }
    // Swaps a node with its parent.
    void rotate_up(node& child) noexcept {
        node& parent = *child.parent;
        link_to(parent) = &child;
        child.parent = parent.parent;
        parent.parent = &child;
        const bool was_left = parent.left == &child;
        node*& between = was_left ? child.right : child.left;
        (was_left ? parent.left : parent.right) = between;
        if (between != nullptr) between->parent = &parent;
        between = &parent;
        child.end_max = parent.end_max;
        summarise(parent);
    }
    [[nodiscard]] std::uint32_t draw() noexcept {
        random_ ^= random_ << 13;
        random_ ^= random_ >> 17;
        random_ ^= random_ << 5;
        return random_;
    }

    node* root_ = nullptr;
    std::uint32_t random_ = 0x9e37'79b9;
};

}  // namespace sluice::bench::range_locks
