#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace sluice::io {

/// The number of items of a strand that wait or run, which decides the thread that runs them. It is
/// a separate word so that a test can explore every order of events (`Word` is std::atomic outside
/// tests).
///
/// Thread safety: add() from any thread; the others from the current run.
///
/// Invariant: a run that add() or remove() requests begins only after the previous one has ended.
template <class Word = std::atomic<std::size_t>>
class turn_count {
public:
    /// Counts an item that is about to be pushed. It is counted before, because a run that pops it
    /// uncounted would subtract it first, and two threads would find no item waiting. Returns
    /// whether the caller must begin a run.
    [[nodiscard]] bool add() noexcept {
        // acq_rel: pairs with remove(): the writes of earlier items.
        return waiting_.fetch_add(1, std::memory_order_acq_rel) == 0;
    }

    /// Returns how many items a run may take: at most the counted ones, so it never subtracts an
    /// uncounted one.
    [[nodiscard]] std::size_t at_most(std::size_t most) const noexcept {
        // Acquire: pairs with add().
        return std::min(waiting_.load(std::memory_order_acquire), most);
    }

    /// A run of `count` items has ended. Returns whether the caller must begin another one.
    [[nodiscard]] bool remove(std::size_t count) noexcept {
        // release: the writes of the items, for the thread that runs the next. acquire: as above.
        return waiting_.fetch_sub(count, std::memory_order_acq_rel) != count;
    }

    [[nodiscard]] bool is_idle() const noexcept { return waiting_.load(std::memory_order_relaxed) == 0; }

private:
    Word waiting_{0};
};

}  // namespace sluice::io
