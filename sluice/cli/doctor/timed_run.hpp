#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "sluice/cli/doctor/finding.hpp"

namespace sluice::cli::doctor {

/// Runs checks on a thread of their own, and shows their steps on a terminal. Not every system call
/// has a deadline: a lookup, or a file on a server that does not answer, can block without end. So
/// after `within` the thread is abandoned; its unfinished step is a problem in the result, and
/// `is_complete` is false. Then the program must end with std::_Exit, because the thread still
/// runs.
struct timed_result {
    std::vector<finding> findings;
    bool is_complete = false;
};

/// `checks` owns all that it uses. Blocks: for `within` at most. `shows_progress`: writes the name
/// of the step to standard error, and erases it at the end.
[[nodiscard]] timed_result run_within(std::function<void(finding_list&)> checks,
                                      std::chrono::milliseconds within, bool shows_progress);

}  // namespace sluice::cli::doctor
