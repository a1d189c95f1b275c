#pragma once

namespace sluice::cli {

/// Prints what a client can make the server hold or do at most: everything in smb/server/limits.hpp.
void print_limits();

}  // namespace sluice::cli
