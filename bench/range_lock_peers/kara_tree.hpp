#pragma once

#include <atomic>
#include <mutex>

#include "bench/range_lock_peers/interval_treap.hpp"
#include "bench/range_lock_peers/spinning.hpp"

namespace sluice::bench::range_locks {

/// The fair reader-writer range lock on an interval tree under a spin lock: J. Kara, "lib:
/// Implement range locks" (Linux kernel mailing list, 2013), with the readers of D. Bueso (2017).
///
/// A request counts the conflicting ranges in the tree, held or waiting, inserts its own, and
/// sleeps until the count is 0. A release removes its range and decrements the count of all
/// overlapping ones: they came later. The node belongs to the holder, so nothing is allocated. The
/// kernel wakes a task; here it is a futex, after a moment of spinning.
class kara_tree {
public:
    static constexpr bool has_readers = true;
    struct holder : interval_treap_node {
        access how = access::exclusive;
        std::uint32_t blockers = 0;  // under the latch
        holder* next_woken = nullptr;
        std::atomic<std::uint32_t> is_waiting{0};
    };
    static constexpr std::size_t held_bytes = sizeof(holder);

    explicit kara_tree(const resource&) noexcept {}
    kara_tree(const kara_tree&) = delete;
    kara_tree& operator=(const kara_tree&) = delete;

    [[nodiscard]] std::size_t object_bytes() const noexcept { return sizeof(*this); }

    void lock(holder& held, const extent& where, access how) {
        if (ask(held, where, how)) return;
        for (unsigned looks = 0; looks != backoff::spins_max; ++looks) {
            // acquire: pairs with the release of wake().
            if (held.is_waiting.load(std::memory_order_acquire) == 0) return;
            relax();
        }
        held.is_waiting.wait(1, std::memory_order_acquire);
    }
    /// Requests without waiting. Returns whether it is held; otherwise it will be, when
    /// is_granted().
    [[nodiscard]] bool ask(holder& held, const extent& where, access how) {
        const std::lock_guard holding(latch_);
        held.how = how;
        held.blockers = count_blockers(where, how);
        tree_.insert(held, where);
        if (held.blockers == 0) return true;
        // The thread that ends it takes the latch first.
        held.is_waiting.store(1, std::memory_order_relaxed);
        return false;
    }
    [[nodiscard]] static bool is_granted(const holder& held) noexcept {
        // acquire: pairs with the release of wake().
        return held.is_waiting.load(std::memory_order_acquire) == 0;
    }
    [[nodiscard]] bool try_lock(holder& held, const extent& where, access how) {
        const std::lock_guard holding(latch_);
        if (count_blockers(where, how) != 0) return false;
        held.how = how;
        held.blockers = 0;
        tree_.insert(held, where);
        return true;
    }
    void unlock(holder& held) noexcept {
        holder* woken = nullptr;
        {
            const std::lock_guard holding(latch_);
            tree_.erase(held);
            tree_.for_each_overlap(held.where, [&](interval_treap_node& node) {
                auto& other = static_cast<holder&>(node);
                if (held.how == access::shared and other.how == access::shared) return;
                if (--other.blockers != 0) return;
                other.next_woken = woken;
                woken = &other;
            });
        }
        while (woken != nullptr)
            wake(*std::exchange(woken, woken->next_woken));
    }

private:
    [[nodiscard]] std::uint32_t count_blockers(const extent& where, access how) const noexcept {
        std::uint32_t blockers = 0;
        tree_.for_each_overlap(where, [&](const interval_treap_node& node) {
            const bool both_read =
                how == access::shared and static_cast<const holder&>(node).how == access::shared;
            if (not both_read) ++blockers;
        });
        return blockers;
    }
    // release: pairs with the acquire of lock(). After it the holder may be destroyed; waking only
    // needs its address.
    static void wake(holder& waiting) noexcept {
        waiting.is_waiting.store(0, std::memory_order_release);
        waiting.is_waiting.notify_one();
    }

    spin_lock latch_;
    interval_treap tree_;
};

}  // namespace sluice::bench::range_locks
