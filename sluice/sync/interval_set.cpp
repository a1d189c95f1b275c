#include "sluice/sync/interval_set.hpp"

#include <algorithm>

namespace sluice::sync {

bool interval_set::is_before(const interval_node& a, const interval_node& b) noexcept {
    if (a.where_.first() != b.where_.first()) return a.where_.first() < b.where_.first();
    return a.number_ < b.number_;
}

interval_node* interval_set::leftmost(interval_node* node) noexcept {
    while (node != nullptr and node->left_ != nullptr)
        node = node->left_;
    return node;
}

interval_node* interval_set::next(interval_node& node) noexcept {
    if (node.right_ != nullptr) return leftmost(node.right_);
    interval_node* child = &node;
    while (child->parent_ != nullptr and child->parent_->right_ == child)
        child = child->parent_;
    return child->parent_;
}

// Brings what a node knows of its subtree up to date; its children's is.
void interval_set::summarise(interval_node& node) noexcept {
    node.last_max_ = node.where_.last();
    node.has_writer_ = node.is_writer_;
    node.writer_last_max_ = node.is_writer_ ? node.where_.last() : 0;
    for (const interval_node* const child : {node.left_, node.right_}) {
        if (child == nullptr) continue;
        node.last_max_ = std::max(node.last_max_, child->last_max_);
        node.has_writer_ = node.has_writer_ or child->has_writer_;
        node.writer_last_max_ = std::max(node.writer_last_max_, child->writer_last_max_);
    }
}

void interval_set::summarise_up(interval_node* node) noexcept {
    for (; node != nullptr; node = node->parent_)
        summarise(*node);
}

interval_node*& interval_set::link_to(interval_node& node) noexcept {
    if (node.parent_ == nullptr) return root_;
    return node.parent_->left_ == &node ? node.parent_->left_ : node.parent_->right_;
}

// Exchanges a node and its parent, keeping the order.
void interval_set::rotate_up(interval_node& node) noexcept {
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

// xorshift64*, [Vigna 2016]: nobody gains by guessing the shape of a tree of locks.
std::uint32_t interval_set::draw() noexcept {
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return static_cast<std::uint32_t>((random_ * 0x2545'f491'4f6c'dd1d) >> 32);
}

void interval_set::insert(interval_node& node, std::uint64_t number) noexcept {
    ENSURE(not node.is_in_set_ and not node.where_.is_nowhere());
    node.number_ = number;
    node.is_in_set_ = true;
    node.priority_ = draw();
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

void interval_set::erase(interval_node& node) noexcept {
    ENSURE(node.is_in_set_);
    while (node.left_ != nullptr and node.right_ != nullptr)
        rotate_up(node.left_->priority_ < node.right_->priority_ ? *node.right_ : *node.left_);
    interval_node* const child = node.left_ != nullptr ? node.left_ : node.right_;
    if (child != nullptr) child->parent_ = node.parent_;
    link_to(node) = child;
    summarise_up(node.parent_);
    node.is_in_set_ = false;
}

void interval_set::relocate(interval_node& from, interval_node& to) noexcept {
    ENSURE(from.is_in_set_ and not to.is_in_set_ and to.where_ == from.where_ and
               to.is_writer_ == from.is_writer_,
           "the new node stands for what the old one did");
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

void interval_set::set_writer(interval_node& node, bool is_writer) noexcept {
    ENSURE(node.is_in_set_);
    node.is_writer_ = is_writer;
    summarise_up(&node);
}

}  // namespace sluice::sync
