#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::cli::doctor {

/// The account that a server runs with.
struct server_account {
    std::uint32_t user_id = 0;
    std::vector<std::uint32_t> groups;  ///< all of them

    /// Returns an account by its user ID, with the groups of the system's databases. Blocks: as
    /// those do. Errors: an unknown user has no groups.
    [[nodiscard]] static server_account of_user(std::uint32_t user_id);
    /// Returns the user ID of a name; std::nullopt for an unknown one. Blocks: as of_user().
    [[nodiscard]] static std::optional<std::uint32_t> user_id_of(const std::string& name);
    /// Returns the account of this process.
    [[nodiscard]] static server_account of_this_process();
};

/// The owner and mode of a file.
struct file_rights {
    std::uint32_t user_id = 0;
    std::uint32_t group_id = 0;
    unsigned mode = 0;
};

/// Returns which of the `wanted` bits (4: read, 2: write, 1: execute) the account lacks by owner
/// and mode; 0: it has all. Root has all. Access control lists are not considered. Pure function.
[[nodiscard]] unsigned missing_bits(const server_account& account, const file_rights& of,
                                    unsigned wanted) noexcept;

/// A component of a path that prevents its use.
struct path_barrier {
    std::string component;  ///< the path up to and including it
    int code = 0;           ///< the errno value; 0: rights are missing
    unsigned missing = 0;   ///< bits, as above
    bool has_acl = false;   ///< an access control list may grant more, or less
};

/// Walks an absolute path from the root: each directory on the way needs x, and the last component
/// `wanted`. Follows symbolic links, whose directories are not walked. Returns the first barrier,
/// or std::nullopt. Blocks: as long as the file systems.
[[nodiscard]] std::optional<path_barrier> walk(const server_account& account, const std::string& path,
                                               unsigned wanted);

/// Returns "r-x" for 5.
[[nodiscard]] std::string bits_text(unsigned bits);

}  // namespace sluice::cli::doctor
