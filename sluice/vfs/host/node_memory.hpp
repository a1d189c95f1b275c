#pragma once

#include <memory_resource>

// Internal to the host volume.

namespace sluice::vfs {

/// Memory of nodes and their names, which come and go with every open, perhaps on different threads. A thread
/// keeps the blocks that it frees for its next allocations of their size, up to a limit. With
/// AddressSanitizer no blocks are kept, so that a use after free is detected.
///
/// Thread safety: any thread; a kept block belongs to one thread. Allocates: if the thread has kept no block
/// of the size. Complexity: constant.
[[nodiscard]] std::pmr::memory_resource& node_memory() noexcept;

}  // namespace sluice::vfs
