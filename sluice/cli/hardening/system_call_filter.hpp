#pragma once

#include "sluice/cli/hardening/measure.hpp"

namespace sluice::cli {

/// Denies the system calls that a file server never needs, with EPERM, for the calling thread
/// and all threads and processes that it starts from now on: programs to execute, other
/// processes' memory, mounts and namespaces, kernel modules, keyrings, BPF, tracing, clocks
/// and host names, files by handle. What io_uring does is not filtered by the kernel; none of
/// these calls exists there.
///
/// Needs no_new_privs (drop_privileges). The kernel evaluates the filter once for each system call
/// and remembers that the other calls are always allowed, so that they cost nothing.
[[nodiscard]] hardening_measure filter_system_calls() noexcept;

}  // namespace sluice::cli
