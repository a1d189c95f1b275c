#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sluice/cli/smb/sync_plan.hpp"

namespace sluice::cli {

/// The treatment of symbolic links of this machine.
enum class link_policy : std::uint8_t { skip, follow };

/// The contents of a directory of this machine.
struct local_tree {
    std::vector<sync_entry> entries;  ///< with names as a server spells them; sorted
    std::vector<std::string> below;   ///< the same paths as this machine spells them
    /// What could not be read, and why. The list is complete if this is empty.
    std::vector<std::string> problems;
};

/// The treatment of other file systems that are mounted below the directory.
enum class mount_policy : std::uint8_t {
    enter,
    keep_out,  ///< an entry of kind `other`, without contents
};

/// Lists a directory recursively, each directory before its entries. A link is an entry of kind
/// `other`, or with `follow` what it leads to; a link to one of the directories above it is a
/// problem. Blocks: for the file system. Allocates: the list, at most remote_entries_max entries.
[[nodiscard]] local_tree list_local_tree(const std::filesystem::path& root, link_policy links,
                                         mount_policy mounts);

}  // namespace sluice::cli
