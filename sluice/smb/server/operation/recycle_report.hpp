#pragma once

#include "sluice/vfs/volume.hpp"

namespace sluice::smb::server {

class server_context;

/// Writes to the log what the recycle bin of a volume has failed to do since the last call, if
/// anything. Called after removals, after renames that have failed, and after a pass over the bin.
/// `of` is the volume of the share: that of an impersonated account has no bin.
/// Thread safety: any loop, outside sections of files. Allocates: the text.
void report_recycle_problem(server_context& host, vfs::volume& of) noexcept;

}  // namespace sluice::smb::server
