#pragma once

#include "sluice/sync/atomics.hpp"

namespace sluice::sync {

/// A small mutex for short critical sections that make no system call except for memory: it spins
/// for a moment, then sleeps.
///
/// Invariants:
///   1. `word_` is `free` unless a thread holds the mutex.
///   2. While threads sleep, `word_` is `contended`, or a woken thread is about to set it to that:
///      it acquires the mutex as `contended`, whether others sleep or not.
/// Thread safety: any thread. Blocks: while another thread holds it. Not fair: decisions that must
/// be fair are made under it. std-like, for std::lock_guard. Size: four bytes.
template <class Atomics>
class basic_small_mutex {
public:
    void lock() noexcept {
        std::uint32_t expected = free;
        // acquire: pairs with the release of unlock().
        if (word_.compare_exchange_strong(expected, held, std::memory_order_acquire,
                                          std::memory_order_relaxed))
            return;
        lock_slowly();
    }
    void unlock() noexcept {
        // release: pairs with the acquire of the next lock().
        if (word_.exchange(free, std::memory_order_release) == contended) Atomics::wake_one(word_);
    }

private:
    enum : std::uint32_t { free, held, contended };

    void lock_slowly() noexcept {
        for (unsigned round = 0; round != Atomics::spins_max; ++round) {
            Atomics::back_off(round);
            std::uint32_t expected = free;
            // acquire: pairs with the release of unlock().
            if (word_.load(std::memory_order_relaxed) == free and
                word_.compare_exchange_weak(expected, held, std::memory_order_acquire,
                                            std::memory_order_relaxed))
                return;
        }
        // From here on unlock() must wake a thread, perhaps unnecessarily (invariant 2). acquire:
        // pairs with the release of unlock().
        while (word_.exchange(contended, std::memory_order_acquire) != free)
            Atomics::wait(word_, contended, Atomics::time_point::max());
    }

    typename Atomics::template atomic<std::uint32_t> word_{free};
};

}  // namespace sluice::sync
