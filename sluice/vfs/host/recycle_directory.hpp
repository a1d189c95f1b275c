#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/base/result.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/path_handle.hpp"

// Internal to the host volume: the directories of the recycle bin.
//
// The bin is the server's, and only the server can write to it. A directory in it belongs to the
// owner of files, who may rename, add and remove names beneath it at any time. So the server never
// relies on a name there: it opens directories one by one, without links, on one mount, and checks
// what it has opened. It creates and gives away a directory where only it can write, in the bin,
// and renames it to its place then: a change of the owner by a name beneath could be led to another
// directory.

namespace sluice::vfs {

/// Limits every path in the bin.
inline constexpr auto recycle_confinement = io::confinement::beneath_one_mount_no_symlinks;

/// The owners that a directory may have. For one that does not exist, the first is its owner.
struct recycle_owners {
    std::uint32_t wanted = 0;
    std::uint32_t other = 0;
    bool has_modes = true;  // false: the file system has one owner and one mode for all files
};

/// The rights of a directory of the share: its security descriptor; empty: it has none.
/// std::nullopt: the file system stores no descriptors.
using recycle_rights = std::optional<std::vector<std::byte>>;

/// Opens a directory by one name in another. If others may write to it, takes this right from them.
/// Errors: EACCES if it has another owner, or if others keep the right to write; ENOENT; ELOOP,
/// ENOTDIR if it is a link or a file; EXDEV if it is a mount. Blocks: for the file system.
[[nodiscard]] result<io::path_handle> open_recycle_directory(const io::path_handle& base,
                                                             std::string_view name, recycle_owners owners);

/// Returns the owner of an open directory. Errors: EIO.
[[nodiscard]] result<std::uint32_t> recycle_owner_of(const io::handle& directory);

/// Opens a directory in `base`, which may be the bin itself; creates it with mode 0700 if it does
/// not exist. It has the rights `like`, also if it exists. A server without the privilege to change
/// owners keeps a directory in the bin, and creates no directory for another owner elsewhere; with
/// the privilege, it gives away one that it has kept in the bin. Errors: as open_recycle_directory;
/// EPERM if the server may not set the owner; those of mkdir(2) and setxattr(2). Blocks: for the
/// file system.
[[nodiscard]] result<io::path_handle> make_recycle_directory(const io::path_handle& bin,
                                                             const io::path_handle& base,
                                                             std::string_view name, recycle_owners owners,
                                                             const recycle_rights& like = std::nullopt);

/// Creates the bin in the root, readable by others, so that each owner reaches the own directory.
/// Errors: as open_recycle_directory; EEXIST, ENOSPC; those of mkdir(2). Blocks: for the file
/// system.
[[nodiscard]] result<io::path_handle> make_recycle_bin(const io::path_handle& root, std::string_view name,
                                                       recycle_owners owners);

/// Returns whether a directory can be a bin: it has the mark of one, or is empty and gets the mark.
/// On a file system without extended attributes, it has no other entries than those that the server
/// creates in a bin. Complexity: linear in the entries. Errors: those of getdents(2) and
/// setxattr(2). Blocks: for the file system.
[[nodiscard]] result<bool> becomes_bin(const io::path_handle& directory, bool has_attributes);

inline constexpr const char* recycle_bin_attribute = "user.sluice.recycle_bin";

/// The directory in the bin for files that are about to be removed. Only the server can enter it.
inline constexpr std::string_view removed_files_name = ".removed";

/// Returns the owner that a directory of the bin has by its name; std::nullopt for other names.
[[nodiscard]] std::optional<std::uint32_t> owner_of_name(std::string_view name) noexcept;

}  // namespace sluice::vfs
