#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sluice/cli/smb/remote.hpp"
#include "sluice/smb/client/directory.hpp"

namespace sluice::cli {

/// Something on a share.
struct remote_entry {
    std::string path;  ///< in the share
    smb::client::file_status status{};
};

/// Folders below folders beyond this are taken for a link that leads back into itself.
inline constexpr std::size_t remote_depth_max = 128;

/// A tree with more entries, or longer paths in total, is refused: a server could list directories without
/// end.
inline constexpr std::size_t remote_entries_max = 4U << 20;
inline constexpr std::size_t remote_path_bytes_max = 512U << 20;

/// Everything below a folder; folders before what is in them. Links are listed and not followed.
[[nodiscard]] io::task<smb::client::outcome<std::vector<remote_entry>>> entries_below(
    smb::client::tree& in, std::string path) noexcept;

/// A file, or with `is_recursive` a folder and all below it, itself first. Prints why and leaves if it is a
/// folder and that was not asked for.
[[nodiscard]] std::vector<remote_entry> entries_of(remote_share& share, const std::string& path,
                                                   bool is_recursive);

/// Files under way at once.
inline constexpr std::size_t files_at_once = 8;

/// Does one thing with each of `count` items, files_at_once of them at a time, until the connection breaks.
[[nodiscard]] io::task<void> for_each_at_once(remote_share& share, std::size_t count,
                                              std::function<io::task<void>(std::size_t)> what) noexcept;

}  // namespace sluice::cli
