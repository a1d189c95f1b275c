#pragma once

namespace sluice::cli {

/// Prints what a client can make the server hold or do at most: everything in smb/server/core/limits.hpp,
/// with the bounds of a server that this process would run, and what happens at each limit.
void print_limits();

}  // namespace sluice::cli
