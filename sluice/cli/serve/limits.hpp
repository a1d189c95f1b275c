#pragma once

namespace sluice::cli {

/// Prints the most that a client can make the server hold or do: every limit in
/// smb/server/core/limits.hpp, with the bounds of a server run by this process, and what happens at
/// each limit.
void print_limits();

}  // namespace sluice::cli
