#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace sluice::io {

/// How many items of a strand wait or run, and with that, who has them run: a word of its own so that a test
/// can walk through every order of events (`Word` is std::atomic outside tests).
///
/// Thread safety: add() from any thread; the others from the current run.
///
/// Invariant: a run that add() or remove() asks for begins only after the previous one has ended.
template <class Word = std::atomic<std::size_t>>
class turn_count {
public:
    /// An item is about to be pushed: counted before, because were it popped before it is counted, a run
    /// would count it off first, and two threads would find nothing waiting. Returns whether a run is to be
    /// begun.
    [[nodiscard]] bool add() noexcept {
        // acq_rel: pairs with remove(): what the items before have written.
        return waiting_.fetch_add(1, std::memory_order_acq_rel) == 0;
    }

    /// How many items a run may take: no more are counted, and so it never counts off one that is not.
    [[nodiscard]] std::size_t at_most(std::size_t most) const noexcept {
        return std::min(waiting_.load(std::memory_order_acquire), most);  // acquire: pairs with add()
    }

    /// A run has ended, behind so many items. Returns whether another one is to be begun.
    [[nodiscard]] bool remove(std::size_t count) noexcept {
        // release: what the items have written, for the thread that runs the next. acquire: as above.
        return waiting_.fetch_sub(count, std::memory_order_acq_rel) != count;
    }

    [[nodiscard]] bool is_idle() const noexcept { return waiting_.load(std::memory_order_relaxed) == 0; }

private:
    Word waiting_{0};
};

}  // namespace sluice::io
