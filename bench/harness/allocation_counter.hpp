#pragma once

#include <cstdint>

namespace sluice::bench {

/// How often the program has asked for memory so far, from any thread: calls of malloc and its family, and so
/// of operator new. A resize counts; freeing does not. Needs the object sluice_allocation_counter in the
/// program. Thread safety: any thread. Exact once the threads that allocate have been joined; but a TSan
/// build misses aligned_alloc, posix_memalign and memalign, which TSan takes over and does not tell of.
[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace sluice::bench
