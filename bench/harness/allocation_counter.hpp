#pragma once

#include <cstdint>

namespace sluice::bench {

/// Returns the number of allocations of the program so far, from any thread: calls of malloc and
/// its family, and so of operator new. A resize counts; freeing does not. Needs the object
/// sluice_allocation_counter in the program. Thread safety: any thread. Exact once the threads that
/// allocate have been joined. A TSan build misses aligned_alloc, posix_memalign and memalign, which
/// TSan replaces without notifying the hooks.
[[nodiscard]] std::uint64_t allocations() noexcept;

}  // namespace sluice::bench
