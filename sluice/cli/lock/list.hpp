#pragma once

#include "sluice/cli/lock/options.hpp"

namespace sluice::cli {

/// Prints the holders and waiters of a lock file. Returns the exit status.
[[nodiscard]] int list_lock_requests(const lock_options& options);

}  // namespace sluice::cli
