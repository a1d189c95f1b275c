#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

namespace sluice::cli {

/// Processor time, user and system, that these processes and the children they have now have used so far, of
/// all threads, in seconds; a process that has ended counts for nothing. Blocks: for /proc.
[[nodiscard]] double cpu_seconds_of(const std::vector<pid_t>& processes);

/// The same, of each thread that there is, by its number.
[[nodiscard]] std::map<pid_t, double> cpu_seconds_by_thread(const std::vector<pid_t>& processes);

}  // namespace sluice::cli
