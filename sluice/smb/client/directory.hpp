#pragma once

#include <string>
#include <vector>

#include "sluice/smb/client/remote_file.hpp"
#include "sluice/smb/client/tree.hpp"

namespace sluice::smb::client {

/// An entry of a directory.
struct directory_entry {
    std::string name;  ///< UTF-8, as the server spells it; see is_safe_name()
    file_status status{};
};

/// Returns whether a name from a server may be used as one name on this machine: not empty, not `.`
/// or `..`, without `/`, `\` and NUL. A server that lists any other name tries to redirect files to
/// another place.
[[nodiscard]] bool is_safe_name(std::string_view name) noexcept;

/// Lists a directory that was opened for list_directory, without `.` and `..`. Errors: `status`;
/// `protocol` for an invalid listing, an unsafe name, or more than `entries_max` entries, those two
/// included. Allocates: the list. Complexity: a round trip for each limits::listing_bytes.
[[nodiscard]] io::task<outcome<std::vector<directory_entry>>> list(
    remote_file& directory, std::size_t entries_max = limits::listing_entries_max) noexcept;

/// The same for a path.
[[nodiscard]] io::task<outcome<std::vector<directory_entry>>> list(tree& in, std::string path) noexcept;

}  // namespace sluice::smb::client
