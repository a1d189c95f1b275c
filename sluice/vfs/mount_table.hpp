#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/vfs/fs_domain.hpp"

namespace sluice::vfs {

/// One mount of /proc/self/mountinfo.
struct mount_entry {
    std::uint64_t id = 0;      // as STATX_MNT_ID
    std::uint64_t device = 0;  // of the superblock; st_dev may be another one (btrfs, overlayfs)
    std::string where{};
    std::string type{};
};

/// The mounts that the text of a mountinfo file lists; lines that are not in its format are left out.
/// Allocates: what it returns.
[[nodiscard]] std::vector<mount_entry> parse_mountinfo(std::string_view text);

/// That of this process. Empty if /proc cannot be read. Blocks: for the kernel.
[[nodiscard]] std::string read_mountinfo();

/// A question whether the mounts of this process have changed since it was asked last; the answer is `true`
/// for ever if the kernel cannot tell. Opens /proc/self/mountinfo at the first question.
[[nodiscard]] std::function<bool()> mount_changes();

/// Where calls of a file system of this type start to run. Any call of FUSE and of a network file system may
/// hang for ever. What lies below overlayfs, and what a type does that we do not know, only use can show.
[[nodiscard]] call_policy policy_of_type(std::string_view type) noexcept;

}  // namespace sluice::vfs
