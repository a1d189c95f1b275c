#pragma once

#include <atomic>

namespace sluice::io {

/// One event and one waiter, on two threads, in either order: the second one resumes the waiter. It
/// is separate from scope_alarm, so that a test can explore every order of events (`Word` is
/// std::atomic outside tests).
///
/// Thread safety: wait() and signal() once each, on any threads. Invariant: after its own call
/// neither thread accesses this, unless wait() returns false.
template <class Word = std::atomic<void*>>
class late_waiter {
public:
    /// Returns whether signal() is still to come; it returns `waiter` then, and this
    /// may be gone already.
    [[nodiscard]] bool wait(void* waiter) noexcept {
        void* none = nullptr;
        // release: the waiter's state, for the thread that resumes it. acquire: the writes of the
        // signalling thread.
        return word_.compare_exchange_strong(none, waiter, std::memory_order_acq_rel,
                                             std::memory_order_acquire);
    }

    /// Returns the waiter to resume; null if there is none yet, and then this may be gone.
    [[nodiscard]] void* signal() noexcept {
        return word_.exchange(this, std::memory_order_acq_rel);  // pairs with wait()
    }

private:
    Word word_{nullptr};  // the waiter, or this once it is signalled
};

}  // namespace sluice::io
