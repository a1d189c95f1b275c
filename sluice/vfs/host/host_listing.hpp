#pragma once

#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/node_children.hpp"

// Internal to the host volume.

namespace sluice::vfs {

/// Lists a directory of the host. Errors: as io::directory_handle::open. Allocates: its buffers;
/// next() allocates nothing.
[[nodiscard]] result<std::unique_ptr<directory_listing>> list_host_directory(host_tree& tree,
                                                                             const io::handle& directory);

}  // namespace sluice::vfs
