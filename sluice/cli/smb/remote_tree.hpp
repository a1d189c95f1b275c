#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sluice/cli/smb/remote.hpp"
#include "sluice/smb/client/directory.hpp"

namespace sluice::cli {

/// An object on a share.
struct remote_entry {
    std::string path;  ///< in the share
    smb::client::file_status status{};
};

/// A tree with deeper nesting is assumed to contain a link that leads back to a parent.
inline constexpr std::size_t remote_depth_max = 128;

/// A tree with more entries, or longer paths in total, is rejected: a server could list directories
/// endlessly.
inline constexpr std::size_t remote_entries_max = 4U << 20;
inline constexpr std::size_t remote_path_bytes_max = 512U << 20;

/// The treatment of directories that are links which the server follows. The server lists such a
/// link as the directory that it leads to.
enum class link_contents : std::uint8_t {
    listed,
    /// Before removals: an entry of another directory is not one of the listed tree.
    hidden,
};

/// Lists a directory recursively; each directory comes before its entries. Links that the server
/// does not follow are listed and not followed. With `hidden`, other links to directories have the
/// status of the link, too.
[[nodiscard]] io::task<smb::client::outcome<std::vector<remote_entry>>> entries_below(
    smb::client::tree& in, std::string path, link_contents links = link_contents::listed) noexcept;

/// Returns a file, or with `is_recursive` a directory, itself first, and everything below it.
/// Prints the reason and leaves if it is a directory and `is_recursive` is false. With `hidden`,
/// the first entry has the status of the link as well, if `path` is one.
[[nodiscard]] std::vector<remote_entry> entries_of(remote_share& share, const std::string& path,
                                                   bool is_recursive,
                                                   link_contents links = link_contents::listed);

/// Returns the status of an object, and for a link that of the link, not of its target. Errors: as
/// tree::open(). Suspends.
[[nodiscard]] io::task<smb::client::outcome<smb::client::file_status>> status_of_object(
    smb::client::tree& in, std::string path) noexcept;

/// Number of files that are copied at the same time.
inline constexpr std::size_t files_at_once = 8;

/// Calls a function for each of `count` items, files_at_once of them at a time, until the
/// connection breaks.
[[nodiscard]] io::task<void> for_each_at_once(remote_share& share, std::size_t count,
                                              std::function<io::task<void>(std::size_t)> what) noexcept;

}  // namespace sluice::cli
