#pragma once

#include <utility>

#include "sluice/sync/interval_set.hpp"
#include "sluice/sync/lock_args.hpp"

namespace sluice::sync {

template <class Atomics>
class basic_range_request;

/// A lock that is held or waited for; lives in a guard. Thread safety: none of its own but for `state`.
/// Aligned so that the lowest bits of its address can say something else.
template <class Atomics>
class alignas(16) lock_node final : public interval_node {
public:
    enum : std::uint32_t { granted, cancelled, waiting, asleep };  // of `state`

    lock_node() noexcept = default;

    /// What is asked for, by a node that holds nothing and waits for nothing.
    void describe(const lock_args& wanted) noexcept {
        interval_node::describe(wanted.where, wanted.mode == lock_mode::exclusive);
        owner = wanted.owner;
    }
    [[nodiscard]] lock_args args() const noexcept {
        return {
            .where = where(), .mode = is_writer() ? lock_mode::exclusive : lock_mode::shared, .owner = owner};
    }
    /// Whether `later` has to wait for this one, which came first, where they overlap.
    [[nodiscard]] bool is_in_the_way_of(const lock_args& later) const noexcept {
        if (later.mode == lock_mode::exclusive) return true;
        return is_writer() and (later.owner == nullptr or later.owner != owner);
    }

    // Every lock makes one of these, and waits until what it wrote is out before it locks a bus: what is not
    // said here is written by whoever needs it first.
    bool is_marked = false;  // in a bucket_table
    // Written by the waiter (waiting to asleep) and by whoever ends its wait (to one of the first two, at
    // last).
    typename Atomics::template atomic<std::uint32_t> state{granted};
    const void* owner;

    // In a fair_set:
    bool is_cancelled;        // known under the latch only; whoever waits learns it from `state`
    std::uint32_t blockers;   // earlier nodes, held or waiting, that are in the way; not 0: it waits
    std::uint32_t overtaken;  // how often, since it waits
    basic_range_request<Atomics>* request;  // of one that waits; null: a thread does
    lock_node* next;                        // in a list of nodes whose wait is over
};

/// Waits that are over and not told yet.
template <class Atomics>
class ended_waits {
public:
    using node = lock_node<Atomics>;

    void add(node& one) noexcept {
        one.next = first_;
        first_ = &one;
    }
    [[nodiscard]] node* first() const noexcept { return first_; }
    /// Takes one off the list; null: there is none.
    [[nodiscard]] node* pop() noexcept {
        if (first_ == nullptr) return nullptr;
        return std::exchange(first_, first_->next);
    }

private:
    node* first_ = nullptr;
};

}  // namespace sluice::sync
