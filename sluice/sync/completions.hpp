#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "sluice/sync/lock_node.hpp"

namespace sluice::sync {

/// The completions of range requests that one thread runs: their nesting depth, and those that are
/// queued because they would nest too deep.
///
/// A completion may release another range, or start the next request, and so cause a completion
/// itself. It runs inside that call, on the same stack, as long as no more than tuning::nesting_max
/// run. A deeper one is queued. The frame that runs the deepest completion runs the queue when that
/// returns. So a chain of any length needs a bounded stack. A completion above the deepest level
/// sees no difference: all that it causes has run when its call returns. At the deepest level its
/// calls may return first.
///
/// Invariants:
///   1. `depth_` is the number of completions that run on this thread, at most nesting_max, except
///      for those that run_queued() runs for a thread that is about to wait;
///   2. the queue is empty unless a completion of depth nesting_max runs.
/// Allocates: nothing, the queue links the nodes of the requests. Thread safety: one
/// object for each thread.
template <class Atomics>
class completions {
public:
    using node = lock_node<Atomics>;

    [[nodiscard]] static completions& of_this_thread() noexcept {
        return Atomics::template per_thread<completions>();
    }

    /// Completes the request of a node that neither waits nor is in a list: now, or later on this
    /// thread. The request may then destroy itself. `how` is granted or cancelled.
    void run(node& one, std::uint32_t how) noexcept {
        if (depth_ == depth_max) return queue(one, how);
        ++depth_;
        one.request->complete_now(how == node::granted);
        if (depth_ == depth_max) run_queued();
        --depth_;
    }
    /// Completes the queued requests. For a thread that would otherwise wait, perhaps for a range
    /// granted to one of them.
    void run_queued() noexcept {
        while (first_ != nullptr) {
            node& one = *std::exchange(first_, first_->next);
            one.request->complete_now(one.state.load(std::memory_order_relaxed) == node::granted_later);
        }
    }

private:
    static constexpr std::uint32_t depth_max = Atomics::tuning::nesting_max;
    static_assert(depth_max != 0);

    // Its state remains one in which a request must not be destroyed.
    void queue(node& one, std::uint32_t how) noexcept {
        one.state.store(how == node::granted ? node::granted_later : node::cancelled_later,
                        std::memory_order_relaxed);
        one.next = nullptr;
        (first_ == nullptr ? first_ : last_->next) = &one;
        last_ = &one;
    }

    std::uint32_t depth_ = 0;
    node* first_ = nullptr;  // the queue, a list through `next`
    node* last_ = nullptr;   // valid if there is a first one
};

}  // namespace sluice::sync
