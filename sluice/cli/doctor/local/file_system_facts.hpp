#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/result.hpp"
#include "sluice/cli/doctor/finding.hpp"

namespace sluice::cli::doctor {

/// The properties of the file system at a path.
struct file_system_facts {
    std::string type;  ///< as in "ext4"; "0x1234" for an unknown one
    bool is_read_only = false;
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;    ///< for accounts other than root
    std::uint64_t total_inodes = 0;  ///< 0: it has no such limit
    std::uint64_t free_inodes = 0;
    bool has_attributes = true;  ///< user.* extended attributes
    bool has_acls = true;        ///< POSIX access control lists
    bool folds_case = false;     ///< the directory ignores case
};

/// Errors: those of statfs(2). Blocks: as long as the file system.
[[nodiscard]] result<file_system_facts> facts_of_file_system(const std::string& path);

/// Returns the findings about a share there. Pure function.
[[nodiscard]] std::vector<finding> judge_file_system(const std::string& share, const std::string& path,
                                                     const file_system_facts& seen, bool is_read_only_share);

/// Returns the name of a file system by the type of statfs(2).
[[nodiscard]] std::string name_of_file_system(std::uint64_t type);

}  // namespace sluice::cli::doctor
