#pragma once

#include <sys/types.h>

#include <vector>

namespace sluice::cli {

/// Processor time, user and system, that these processes and the children they have now have used so far, of
/// all threads, in seconds; a process that has ended counts for nothing. Blocks: for /proc.
[[nodiscard]] double cpu_seconds_of(const std::vector<pid_t>& processes);

}  // namespace sluice::cli
