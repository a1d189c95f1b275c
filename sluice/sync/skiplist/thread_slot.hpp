#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

namespace sluice::sync::skiplist {

/// Threads that have a slot at the same time; each slot is one thread's until that thread ends.
constexpr unsigned thread_slots = 16;
/// Of a thread that came when all were taken.
constexpr unsigned no_slot = thread_slots;

namespace detail {

inline std::atomic<std::uint32_t> slots_taken{0};  // a bit for each
constexpr unsigned slot_unknown = no_slot + 1;
inline constinit thread_local unsigned own_slot = slot_unknown;

struct slot_keeper {
    slot_keeper() noexcept {
        own_slot = no_slot;
        // acquire: pairs with the release below; what the thread before did with what belongs to the slot.
        std::uint32_t taken = slots_taken.load(std::memory_order_relaxed);
        unsigned slot = no_slot;
        do {
            slot = static_cast<unsigned>(std::countr_one(taken));
            if (slot >= no_slot) return;
        } while (not slots_taken.compare_exchange_weak(taken, taken | 1U << slot, std::memory_order_acquire,
                                                       std::memory_order_relaxed));
        own_slot = slot;
    }
    slot_keeper(const slot_keeper&) = delete;
    slot_keeper& operator=(const slot_keeper&) = delete;
    ~slot_keeper() {
        // release: pairs with the acquire above.
        if (own_slot < no_slot) slots_taken.fetch_and(~(1U << own_slot), std::memory_order_release);
        own_slot = no_slot;  // for what is destroyed later
    }
};

[[gnu::noinline]] inline unsigned take_slot() noexcept {
    static thread_local slot_keeper keeper;
    (void)keeper;
    return own_slot;
}

}  // namespace detail

/// The slot of this thread, or no_slot. Who has one uses what belongs to it without any other thread in
/// between, and sees what the thread before it did there. Complexity: constant, one load but for the first
/// time. Thread safety: any thread.
[[nodiscard]] inline unsigned thread_slot() noexcept {
    const unsigned slot = detail::own_slot;
    return slot != detail::slot_unknown ? slot : detail::take_slot();
}

}  // namespace sluice::sync::skiplist
