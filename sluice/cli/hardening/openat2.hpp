#pragma once

#include <string_view>

#include "sluice/base/error.hpp"

namespace sluice::cli {

/// The remedy if openat2(2), with which the server keeps clients inside of their shares, does not
/// work.
inline constexpr std::string_view openat2_remedy =
    "openat2(2) is blocked, or the kernel is older than 5.6: remove RestrictSUIDSGID= and DynamicUser= from "
    "the systemd unit, or update the container runtime and its seccomp profile";

/// Returns the errno value with which openat2(2) fails in this process; 0: it works. Older
/// container runtimes deny a call that they do not know with EPERM, newer ones and systemd with
/// ENOSYS.
/// Blocks: for a lookup of the root directory. Thread safety: any thread.
[[nodiscard]] int openat2_problem() noexcept;

/// Returns whether the error of opening a share has this cause. Blocks: as openat2_problem().
[[nodiscard]] bool is_for_lack_of_openat2(const error& why) noexcept;

}  // namespace sluice::cli
