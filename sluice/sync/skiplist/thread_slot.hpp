#pragma once

#include <atomic>

namespace sluice::sync::skiplist {

namespace detail {
inline std::atomic<unsigned> slots_taken{0};
inline constinit thread_local unsigned own_slot = 0;  // 0: none yet
}  // namespace detail
/// Returns a number that this thread keeps, and that few others share: threads are counted as they
/// first call this. Thread safety: any thread. Complexity: constant, one load from the second time
/// on.
/// Thread safety: any thread. Complexity: constant, one load from the second time on.
[[nodiscard]] inline unsigned thread_slot() noexcept {
    if (detail::own_slot == 0) [[unlikely]]
        detail::own_slot = detail::slots_taken.fetch_add(1, std::memory_order_relaxed) + 1;
    return detail::own_slot;
}

}  // namespace sluice::sync::skiplist
