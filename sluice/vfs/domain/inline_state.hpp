#pragma once

#include <cstdint>

#include "sluice/sync/atomics.hpp"

namespace sluice::vfs {

/// Where the calls of a domain run.
enum class call_policy : std::uint8_t {
    always_inline,     ///< on the loop: memory, or a volume without a classification
    starts_inline,     ///< on the loop until calls block: local disks
    starts_offloaded,  ///< on workers until they have proved to be quick: overlayfs, unknown types
    never_inline,      ///< on workers: FUSE, network file systems; `offload = always`
};

/// Whether the calls of a domain may run on a loop now.
///
/// Invariant: after offload_always(), and the end of every become_inline() that has begun before
/// it, calls are not inline: each of the two changes its word and then reads, or overwrites, the
/// other one.
/// Atomic: any thread. Atomics: sync::real_atomics, or those that explore the interleavings.
template <class Atomics>
class basic_inline_state {
public:
    explicit basic_inline_state(call_policy policy) noexcept
        : policy_(policy),
          is_inline_(policy == call_policy::always_inline or policy == call_policy::starts_inline) {}

    // relaxed, both: they order nothing. A call that starts late in the old place is harmless.
    [[nodiscard]] call_policy policy() const noexcept { return policy_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool is_inline() const noexcept { return is_inline_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool may_change() const noexcept { return is_changeable(policy()); }

    void offload_always() noexcept {
        // Pairs with become_inline().
        policy_.store(call_policy::never_inline, std::memory_order_seq_cst);
        is_inline_.store(false, std::memory_order_seq_cst);
    }
    void offload() noexcept { is_inline_.store(false, std::memory_order_relaxed); }
    /// Calls have proved to be quick; no effect after offload_always().
    void become_inline() noexcept {
        is_inline_.store(true, std::memory_order_seq_cst);
        // seq_cst: this finds the policy of offload_always(), or that overwrites the state.
        if (not is_changeable(policy_.load(std::memory_order_seq_cst)))
            is_inline_.store(false, std::memory_order_seq_cst);
    }

private:
    [[nodiscard]] static bool is_changeable(call_policy policy) noexcept {
        return policy == call_policy::starts_inline or policy == call_policy::starts_offloaded;
    }

    typename Atomics::template atomic<call_policy> policy_;
    typename Atomics::template atomic<bool> is_inline_;
};

}  // namespace sluice::vfs
