#pragma once

#include <atomic>
#include <cstddef>

namespace sluice::io {

/// The number of children of a task_group that have not ended, and whether a task waits for that.
/// It is separate from the group, so that a test can explore every order of events (`Word` is
/// std::atomic outside tests).
///
/// Thread safety: add() by any thread while the group exists; begin_wait() by the task that joins;
/// end() by each child's thread; size() by any.
///
/// Invariants:
///   1. The wait is ended by the thread that changes the word to `has_waiter` alone, or does not
///      begin.
///   2. A thread does not access the group after its own end(), unless that returns true.
template <class Word = std::atomic<std::size_t>>
class child_count {
public:
    void add() noexcept { word_.fetch_add(one_child, std::memory_order_relaxed); }

    [[nodiscard]] std::size_t size() const noexcept {
        return word_.load(std::memory_order_acquire) / one_child;  // acquire: pairs with end()
    }

    /// Returns whether there are children: then the last one ends the wait, perhaps before this
    /// returns. If not, nothing has changed: a child that another thread adds now ends no wait.
    [[nodiscard]] bool begin_wait() noexcept {
        // acquire: the writes of the children, if none is left.
        std::size_t seen = word_.load(std::memory_order_acquire);
        do {
            if (seen < one_child) return false;
            // release: the waiter, for the last child.
        } while (not word_.compare_exchange_weak(seen, seen | has_waiter, std::memory_order_release,
                                                 std::memory_order_acquire));
        return true;
    }

    /// A child has ended. Returns whether the caller ends the wait; otherwise
    /// the group may be gone.
    [[nodiscard]] bool end() noexcept {
        // release: the writes of the child. acquire: the waiter, and the writes of the other
        // children.
        if (word_.fetch_sub(one_child, std::memory_order_acq_rel) != (one_child | has_waiter)) return false;
        // The waiter has not been resumed yet.
        word_.fetch_sub(has_waiter, std::memory_order_relaxed);
        return true;
    }

private:
    static constexpr std::size_t has_waiter = 1;
    static constexpr std::size_t one_child = 2;

    Word word_{0};
};

}  // namespace sluice::io
