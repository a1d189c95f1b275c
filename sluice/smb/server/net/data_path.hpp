#pragma once

#include "sluice/smb/server/net/path_counters.hpp"
#include "sluice/smb/server/net/splice_pipes.hpp"

namespace sluice::smb::server {

/// The I/O paths of the data of a loop's connections, besides its buffers. Thread safety: one
/// thread.
struct data_path {
    splice_pipes pipes;
    path_counters counted;
};

}  // namespace sluice::smb::server
