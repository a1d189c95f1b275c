#pragma once

#include <string_view>

#include "sluice/io/call/handle.hpp"

// Internal to the host volume.

namespace sluice::vfs {

class host_tree;

/// Returns whether the host's path by which an open file was found is no longer a path of this
/// file: another server, or another program, has moved or removed the name. The name in another
/// case, and a short name, are the same. False if this is not known. Needs no
/// rights. Allocates: yes. Blocks: for the file system. Thread safety: any thread.
[[nodiscard]] bool has_lost_name(host_tree& tree, const io::handle& file, std::string_view known);

}  // namespace sluice::vfs
