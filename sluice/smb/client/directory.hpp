#pragma once

#include <string>
#include <vector>

#include "sluice/smb/client/remote_file.hpp"
#include "sluice/smb/client/tree.hpp"

namespace sluice::smb::client {

/// One name in a folder.
struct directory_entry {
    std::string name;  ///< UTF-8, as the server spells it; see is_safe_name()
    file_status status{};
};

/// Whether a name that a server gave may be used as one name on this machine: not empty, not `.` or `..`,
/// without `/`, `\` and NUL. A server that lists any other tries to have files written elsewhere.
[[nodiscard]] bool is_safe_name(std::string_view name) noexcept;

/// All that a folder, opened for list_directory, holds; `.` and `..` are left out. Errors: `status`;
/// `protocol` for a listing that cannot be taken apart, a name that is not safe, or more than `entries_max`
/// entries, the two included. Allocates: the list. Complexity: a round trip for each limits::listing_bytes.
[[nodiscard]] io::task<outcome<std::vector<directory_entry>>> list(
    remote_file& folder, std::size_t entries_max = limits::listing_entries_max) noexcept;

/// The same for a path.
[[nodiscard]] io::task<outcome<std::vector<directory_entry>>> list(tree& in, std::string path) noexcept;

}  // namespace sluice::smb::client
