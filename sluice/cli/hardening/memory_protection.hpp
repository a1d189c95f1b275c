#pragma once

#include "sluice/cli/hardening/measure.hpp"

namespace sluice::cli {

/// Keeps the keys in the memory of this process out of files and other processes: no core dumps
/// (RLIMIT_CORE 0), and no access with ptrace(2) or through /proc/PID/mem for other processes of
/// the same account (PR_SET_DUMPABLE 0). Affects the whole process, and cannot fail on Linux,
/// except in a sanitizer's build, whose leak check attaches to the process.
[[nodiscard]] hardening_measure protect_memory() noexcept;

/// Returns whether this is a build with AddressSanitizer or ThreadSanitizer.
[[nodiscard]] bool is_sanitizer_build() noexcept;

}  // namespace sluice::cli
