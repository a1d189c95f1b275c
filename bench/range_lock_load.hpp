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

/// The memory whose ranges W1 and W2 lock: 50,000 slots of 1 KiB, 48.8 MiB, mapped and touched in
/// advance.
constexpr std::size_t slot_bytes = 1024;
constexpr std::size_t slot_count = 50'000;
constexpr resource the_area{.bytes = slot_bytes * slot_count, .segment_bytes = slot_bytes};

[[nodiscard]] std::byte* area();
[[nodiscard]] constexpr extent slot(std::size_t number) noexcept {
    return {.begin = number * slot_bytes, .end = (number + 1) * slot_bytes};
}

/// Returns the slots in a fixed random order; the part of one of `threads` threads.
[[nodiscard]] std::span<const extent> queue_of(std::size_t thread, std::size_t threads);
/// The same for the slots with an odd number.
[[nodiscard]] std::span<const extent> odd_queue_of(std::size_t thread, std::size_t threads);

/// The work of one thread until `is_over`. Returns its number of lock and unlock pairs.
using work = std::function<std::uint64_t(unsigned number, const std::atomic<bool>& is_over)>;

/// Runs `what` in existing threads, spread over the CPUs, for as many milliseconds as the repeat
/// has operations. The row gets the CPU time of the threads, and as notes the pairs per second, the
/// pairs of the slowest thread relative to the fastest, and per pair the cycles, instructions and
/// L1 data cache misses where the machine counts them.
void run_on_threads(run& repeat, unsigned threads, const work& what);

}  // namespace sluice::bench::range_locks
