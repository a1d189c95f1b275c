#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

namespace sluice::cli {

/// Returns the CPU time, user and system, that these processes and their present children have used
/// so far, in all threads, in seconds; a process that has ended does not count. Blocks: for /proc.
[[nodiscard]] double cpu_seconds_of(const std::vector<pid_t>& processes);

/// Returns the same for each present thread, by its number.
[[nodiscard]] std::map<pid_t, double> cpu_seconds_by_thread(const std::vector<pid_t>& processes);

}  // namespace sluice::cli
