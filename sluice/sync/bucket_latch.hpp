#pragma once

#include "sluice/sync/atomics.hpp"

namespace sluice::sync {

/// A latch around a few dozen instructions, for threads that seldom meet. Releasing it is a plain
/// store without a wake-up, so a waiting thread backs off. Thread safety: any thread. Blocks: while
/// another thread holds it. Size: four bytes.
template <class Atomics>
class bucket_latch {
public:
    void lock() noexcept {
        if (not try_lock()) [[unlikely]]
            lock_slowly();
    }
    // release: pairs with the acquire of the next lock().
    void unlock() noexcept { word_.store(free, std::memory_order_release); }

private:
    enum : std::uint32_t { free, held };

    // Without a load first: that would fetch the cache line once for reading and once more for
    // writing.
    [[nodiscard]] bool try_lock() noexcept {
        // acquire: pairs with the release of unlock().
        return word_.exchange(held, std::memory_order_acquire) == free;
    }

    // Separate, so that the uncontended path need not save registers for it.
    [[gnu::noinline]] void lock_slowly() noexcept {
        unsigned round = 0;
        do
            Atomics::back_off(round++);
        while (word_.load(std::memory_order_relaxed) == held or not try_lock());
    }

    typename Atomics::template atomic<std::uint32_t> word_{free};
};

}  // namespace sluice::sync
