#pragma once

#include <utility>

#include "sluice/sync/interval_set.hpp"
#include "sluice/sync/lock_args.hpp"

namespace sluice::sync {

template <class Atomics>
class basic_range_request;

/// A range that is held or waited for; part of a guard. Thread safety: only `state`.
template <class Atomics>
class lock_node final : public interval_node {
public:
    // The values of `state`. From `waiting` on, the owner of the node must wait for another value.
    // The last two are those of a request whose completion is queued (completions.hpp).
    enum : std::uint32_t { granted, cancelled, waiting, asleep, granted_later, cancelled_later };

    lock_node() noexcept = default;

    /// Sets the request, while the node neither holds nor waits.
    void describe(const lock_args& wanted) noexcept {
        interval_node::describe(wanted.where, wanted.mode == lock_mode::exclusive);
        owner = wanted.owner;
    }
    [[nodiscard]] lock_args args() const noexcept {
        return {
            .where = where(), .mode = is_writer() ? lock_mode::exclusive : lock_mode::shared, .owner = owner};
    }
    /// Returns whether `later` must wait for this node, which came first, where they overlap.
    [[nodiscard]] bool blocks_later(const lock_args& later) const noexcept {
        if (later.mode == lock_mode::exclusive) return true;
        return is_writer() and (later.owner == nullptr or later.owner != owner);
    }
    /// Returns whether a node in a fair_set waits; otherwise it is held.
    [[nodiscard]] bool is_waiting() const noexcept { return watch_link != nullptr; }
    /// Returns how often it has been overtaken since it waits.
    [[nodiscard]] std::uint32_t& overtaken() noexcept { return this->spare_; }

    // Every lock constructs one of these, and its first atomic instruction waits until these stores
    // have completed. A member without initialiser is written by its first user.
    bool is_marked = false;  // in a bucket_table
    // Written by the waiter (waiting to asleep) and by the thread that ends its wait (finally to
    // one of the first two).
    typename Atomics::template atomic<std::uint32_t> state{granted};
    const void* owner;

    // In a fair_set:
    lock_node* watchers;                    // waiting nodes that watch this one:
                                            // a list through `next`
    lock_node* next;                        // in the list of another's watchers, of
                                            // ended waits, or a queue
    lock_node** watch_link;                 // the pointer to this in a list of
                                            // watchers; null: it is held
    basic_range_request<Atomics>* request;  // that waits or must be completed; null: a thread waits
};

/// Waits that have ended and have not been announced yet.
template <class Atomics>
class ended_waits {
public:
    using node = lock_node<Atomics>;

    void add(node& one) noexcept {
        one.next = first_;
        first_ = &one;
    }
    [[nodiscard]] node* first() const noexcept { return first_; }
    /// Removes and returns one, or null if there is none.
    [[nodiscard]] node* pop() noexcept {
        if (first_ == nullptr) return nullptr;
        return std::exchange(first_, first_->next);
    }

private:
    node* first_ = nullptr;
};

}  // namespace sluice::sync
