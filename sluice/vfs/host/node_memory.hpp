#pragma once

#include <memory_resource>

// Internal to the host volume.

namespace sluice::vfs {

/// Returns the memory resource for nodes and their names, which are created and destroyed with
/// every open, possibly on different threads. A thread keeps the blocks that it frees for its next
/// allocations of their size, up to a limit. With AddressSanitizer no blocks are kept, so that a
/// use after free is detected.
///
/// Thread safety: any thread; a kept block belongs to one thread. Allocates: if the thread has no
/// kept block of the size. Complexity: constant.
[[nodiscard]] std::pmr::memory_resource& node_memory() noexcept;

}  // namespace sluice::vfs
