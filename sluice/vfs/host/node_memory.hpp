#pragma once

#include <memory_resource>

// Internal to the host volume.

namespace sluice::vfs {

/// Memory of nodes and their names, which come and go with every open, perhaps on different threads: a block
/// that is given back is kept for the next of its size on the same thread, up to a limit. With
/// AddressSanitizer nothing is kept, so that a use after the end is seen.
///
/// Thread safety: any thread; what is kept belongs to one thread. Allocates: when the thread has kept none of
/// the size. Complexity: constant.
[[nodiscard]] std::pmr::memory_resource& node_memory() noexcept;

}  // namespace sluice::vfs
