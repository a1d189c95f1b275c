#include "sluice/sync/interval_set.hpp"

#include <algorithm>
#include <bit>

#include "sluice/base/random.hpp"

namespace sluice::sync {

interval_node* interval_tree::leftmost(interval_node* node) noexcept {
    while (node != nullptr and node->left_ != nullptr)
        node = node->left_;
    return node;
}

interval_node* interval_tree::next(interval_node& node) noexcept {
    if (node.right_ != nullptr) return leftmost(node.right_);
    interval_node* child = &node;
    while (child->parent_ != nullptr and child->parent_->right_ == child)
        child = child->parent_;
    return child->parent_;
}

// If a range of the left subtree ends late enough and none of it overlaps, that one begins too
// late, and so do all later ones. So the search never returns from there.
interval_node* interval_tree::first_overlap_below(interval_node* node, const overlap_query& wanted) noexcept {
    while (node != nullptr and reaches(*node, wanted)) {
        if (node->left_ != nullptr and reaches(*node->left_, wanted)) {
            node = node->left_;
            continue;
        }
        if (node->where_.first() > wanted.where.last()) return nullptr;
        if (is_overlap(*node, wanted)) return node;
        node = node->right_;
    }
    return nullptr;
}

interval_node* interval_tree::next_overlap(interval_node& node, const overlap_query& wanted) noexcept {
    interval_node* at = &node;
    for (;;) {
        if (at->right_ != nullptr and reaches(*at->right_, wanted))
            return first_overlap_below(at->right_, wanted);
        while (at->parent_ != nullptr and at->parent_->right_ == at)
            at = at->parent_;
        at = at->parent_;
        if (at == nullptr or at->where_.first() > wanted.where.last()) return nullptr;
        if (is_overlap(*at, wanted)) return at;
    }
}

template <bool is_numbered>
void basic_interval_set<is_numbered>::find_earliest(interval_node* node, const overlap_query& wanted,
                                                    std::uint64_t after, interval_node*& best) noexcept {
    while (node != nullptr and reaches(*node, wanted) and node->number_max_ > after and
           (best == nullptr or node->number_min_ < best->number_)) {
        if (node->where_.first() > wanted.where.last()) {
            node = node->left_;
            continue;
        }
        const bool is_earlier = best == nullptr or node->number_ < best->number_;
        if (is_earlier and node->number_ > after and is_overlap(*node, wanted)) best = node;
        const bool is_right_first =
            node->left_ == nullptr or
            (node->right_ != nullptr and node->right_->number_min_ < node->left_->number_min_);
        find_earliest(is_right_first ? node->right_ : node->left_, wanted, after, best);
        node = is_right_first ? node->left_ : node->right_;
    }
}

// Computes the summary of a node from those of its children.
template <bool is_numbered>
void basic_interval_set<is_numbered>::summarise(interval_node& node) noexcept {
    node.last_max_ = node.where_.last();
    node.has_writer_ = node.is_writer_ ? 1 : 0;
    node.writer_last_max_ = node.is_writer_ ? node.where_.last() : 0;
    for (const interval_node* const child : {node.left_, node.right_}) {
        if (child == nullptr) continue;
        node.last_max_ = std::max(node.last_max_, child->last_max_);
        node.has_writer_ = node.has_writer_ | child->has_writer_;
        node.writer_last_max_ = std::max(node.writer_last_max_, child->writer_last_max_);
    }
    if constexpr (not is_numbered) return;
    node.number_min_ = node.number_max_ = node.number_;
    for (const interval_node* const child : {node.left_, node.right_}) {
        if (child == nullptr) continue;
        node.number_min_ = std::min(node.number_min_, child->number_min_);
        node.number_max_ = std::max(node.number_max_, child->number_max_);
    }
}

template <bool is_numbered>
void basic_interval_set<is_numbered>::summarise_up(interval_node* node) noexcept {
    for (; node != nullptr; node = node->parent_)
        summarise(*node);
}

template <bool is_numbered>
interval_node*& basic_interval_set<is_numbered>::link_to(interval_node& node) noexcept {
    if (node.parent_ == nullptr) return root_;
    return node.parent_->left_ == &node ? node.parent_->left_ : node.parent_->right_;
}

// Exchanges a node and its parent, keeping the order.
template <bool is_numbered>
void basic_interval_set<is_numbered>::rotate_up(interval_node& node) noexcept {
    interval_node& parent = *node.parent_;
    link_to(parent) = &node;
    node.parent_ = parent.parent_;
    const bool is_left = parent.left_ == &node;
    interval_node*& inner = is_left ? node.right_ : node.left_;
    (is_left ? parent.left_ : parent.right_) = inner;
    if (inner != nullptr) inner->parent_ = &parent;
    inner = &parent;
    parent.parent_ = &node;
    summarise(parent);
    summarise(node);
}

namespace {

std::uint64_t secret_of_this_process() noexcept {
    static const std::uint64_t drawn = system_random().next_u64();
    return drawn;
}

}  // namespace

priority_source::priority_source() noexcept
    : priority_source(secret_of_this_process() ^ std::bit_cast<std::uintptr_t>(this)) {}

priority_source::priority_source(std::uint64_t seed) noexcept
    : state_(std::max<std::uint64_t>(seeded_random(seed).next_u64(), 1)) {}

// xorshift64*, [Vigna 2016].
std::uint32_t priority_source::draw() noexcept {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<std::uint32_t>((state_ * 0x2545'f491'4f6c'dd1d) >> 33);
}

template <bool is_numbered>
void basic_interval_set<is_numbered>::insert(interval_node& node, std::uint64_t number,
                                             std::uint32_t priority) noexcept {
    ENSURE(not node.is_in_set_ and not node.where_.is_nowhere());
    node.number_ = number;
    node.is_in_set_ = true;
    node.priority_ = priority & 0x7fff'ffff;
    node.left_ = node.right_ = node.parent_ = nullptr;
    interval_node** link = &root_;
    while (*link != nullptr) {
        node.parent_ = *link;
        link = is_before(node, **link) ? &(*link)->left_ : &(*link)->right_;
    }
    *link = &node;
    summarise(node);
    while (node.parent_ != nullptr and node.parent_->priority_ < node.priority_)
        rotate_up(node);
    summarise_up(node.parent_);
}

template <bool is_numbered>
void basic_interval_set<is_numbered>::erase(interval_node& node) noexcept {
    ENSURE(node.is_in_set_);
    while (node.left_ != nullptr and node.right_ != nullptr)
        rotate_up(node.left_->priority_ < node.right_->priority_ ? *node.right_ : *node.left_);
    interval_node* const child = node.left_ != nullptr ? node.left_ : node.right_;
    if (child != nullptr) child->parent_ = node.parent_;
    link_to(node) = child;
    summarise_up(node.parent_);
    node.is_in_set_ = false;
}

template <bool is_numbered>
void basic_interval_set<is_numbered>::relocate(interval_node& from, interval_node& to) noexcept {
    ENSURE(from.is_in_set_ and not to.is_in_set_ and to.where_ == from.where_ and
               to.is_writer_ == from.is_writer_,
           "the new node is described like the old one");
    link_to(from) = &to;
    for (interval_node* const child : {from.left_, from.right_})
        if (child != nullptr) child->parent_ = &to;
    to.number_ = from.number_;
    to.parent_ = from.parent_;
    to.left_ = from.left_;
    to.right_ = from.right_;
    to.priority_ = from.priority_;
    to.is_in_set_ = true;
    from.is_in_set_ = false;
    summarise(to);
}

template <bool is_numbered>
void basic_interval_set<is_numbered>::set_writer(interval_node& node, bool is_writer) noexcept {
    ENSURE(node.is_in_set_);
    node.is_writer_ = is_writer;
    summarise_up(&node);
}

template class basic_interval_set<false>;
template class basic_interval_set<true>;

}  // namespace sluice::sync
