#pragma once

#include "sluice/sync/atomics.hpp"

namespace sluice::sync {

/// Keeps threads out of a few dozen instructions that threads seldom meet in. Giving it back is a plain
/// store, so there is nobody to wake: who waits backs off. Thread safety: any thread. Blocks: while another
/// thread holds it. Size: four bytes.
template <class Atomics>
class bucket_latch {
public:
    void lock() noexcept {
        if (not try_lock()) [[unlikely]]
            lock_slowly();
    }
    // release: pairs with the acquire of whoever locks next.
    void unlock() noexcept { word_.store(free, std::memory_order_release); }

private:
    enum : std::uint32_t { free, held };

    // Without a look at first: that would bring the cache line once to be read and once more to be written.
    [[nodiscard]] bool try_lock() noexcept {
        // acquire: pairs with the release of unlock().
        return word_.exchange(held, std::memory_order_acquire) == free;
    }

    // Apart, so that who need not wait has no registers to save for it.
    [[gnu::noinline]] void lock_slowly() noexcept {
        unsigned round = 0;
        do
            Atomics::back_off(round++);
        while (word_.load(std::memory_order_relaxed) == held or not try_lock());
    }

    typename Atomics::template atomic<std::uint32_t> word_{free};
};

}  // namespace sluice::sync
