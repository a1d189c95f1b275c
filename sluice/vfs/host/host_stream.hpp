#pragma once

#include "sluice/vfs/host/host_tree.hpp"
#include "sluice/vfs/node_attached.hpp"

// Internal to the host volume.

namespace sluice::vfs {

/// Opens a named stream of a file. Errors: as node_attached::open_stream; EOPNOTSUPP.
[[nodiscard]] result<node_ptr> open_host_stream(host_tree& tree, const io::handle& file, file_key file_key,
                                                std::string path, const stream_request& wanted);

}  // namespace sluice::vfs
