#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/vfs/domain/fs_domain.hpp"

namespace sluice::vfs {

/// One mount of /proc/self/mountinfo.
struct mount_entry {
    std::uint64_t id = 0;      // as STATX_MNT_ID
    std::uint64_t device = 0;  // device of the superblock; st_dev may differ (btrfs, overlayfs)
    std::string where{};
    std::string type{};
};

/// Returns the mounts in the text of a mountinfo file. Skips lines in another format. Allocates:
/// the result.
[[nodiscard]] std::vector<mount_entry> parse_mountinfo(std::string_view text);

/// Returns the mountinfo of this process. Empty if /proc cannot be read. Blocks: for the kernel.
[[nodiscard]] std::string read_mountinfo();

/// Returns a function that returns whether the mounts of this process have changed since its last
/// call; at its first call, since mount_changes(). It returns `true` as long as
/// /proc/self/mountinfo cannot be opened. mount_changes() opens that file. Each call of the
/// function repeats a failed attempt.
[[nodiscard]] std::function<bool()> mount_changes();

/// Returns where calls of a file system of this type initially run. Any call of FUSE and of a
/// network file system may hang indefinitely. Calls of overlayfs, which may be slow if a layer is,
/// and of unknown types start on workers until measurements show that they are fast.
[[nodiscard]] call_policy policy_of_type(std::string_view type) noexcept;

}  // namespace sluice::vfs
