#pragma once

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "bench/range_lock_peers/peer.hpp"

namespace sluice::bench::range_locks {

/// The memory whose ranges W1 and W2 lock: 50,000 slots of 1 KiB, 48.8 MiB, mapped and touched before.
constexpr std::size_t slot_bytes = 1024;
constexpr std::size_t slot_count = 50'000;
constexpr resource the_area{.bytes = slot_bytes * slot_count, .segment_bytes = slot_bytes};

[[nodiscard]] std::byte* area();
[[nodiscard]] constexpr extent slot(std::size_t number) noexcept {
    return {.begin = number * slot_bytes, .end = (number + 1) * slot_bytes};
}

/// The slots in an order that is drawn, once, always the same; the part of one thread of so many.
[[nodiscard]] std::span<const extent> queue_of(std::size_t thread, std::size_t threads);
/// The same of the slots with an odd number alone.
[[nodiscard]] std::span<const extent> odd_queue_of(std::size_t thread, std::size_t threads);

/// What one thread of a crew does until `is_over`: its number of lock and unlock pairs.
using work = std::function<std::uint64_t(unsigned number, const std::atomic<bool>& is_over)>;

/// Runs `what` in threads that were made before, spread over the processors, for as many milliseconds as the
/// repeat has operations. The row gets the CPU time that the threads spent on it, and as notes the pairs per
/// second, how many pairs the slowest thread did of what the fastest did, and per pair the cycles,
/// instructions and L1 data cache misses where the machine counts them.
void run_crew(run& repeat, unsigned threads, const work& what);

}  // namespace sluice::bench::range_locks
