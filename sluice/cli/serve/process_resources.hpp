#pragma once

#include "sluice/smb/server/report/server_bounds.hpp"

namespace sluice::cli {

/// Raises the limit of open descriptors of the process to the hard limit, and returns the resources
/// of the process. A limit that cannot be raised stays as it is. The memory is that of the machine,
/// or what its control groups leave of it.
[[nodiscard]] smb::server::process_resources claim_process_resources();

}  // namespace sluice::cli
