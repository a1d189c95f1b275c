#pragma once

#include "sluice/io/path/path_handle.hpp"

// Names of what is open. Free functions, because they mean the same for a file, a directory and a symbolic
// link.
//
// Linux renames and removes by name, never by descriptor. So these functions ask the kernel for the present
// name of what is open, open that name's directory, make sure that the name there still is the open inode's,
// and only then act; a rename by somebody else up to that point is followed. What is left is the moment
// between the last check and the act: somebody who in that moment puts another inode under the very same name
// has that one renamed or removed. Within one directory only its owner (sticky bit) or those who may write to
// it can. They need /proc.
namespace sluice::io {

enum class replace : bool { no, yes };

/// Removes the present name of what is open (an empty directory, too). What is open stays usable.
/// Errors: ENOENT if it has no name, or not the one it was opened by any more; ENOTEMPTY, EBUSY, EACCES,
/// EPERM, EROFS as `unlinkat(2)`; EAGAIN if it was renamed again and again meanwhile. Allocates: nothing.
/// Blocks: for the file system.
[[nodiscard]] result<void> unlink(const handle& open) noexcept;
/// The same for who knows by what path it was opened: if it still stands there, /proc is not asked.
[[nodiscard]] result<void> unlink(const handle& open, const path_handle& base, path_view likely) noexcept;

/// Gives what is open the name `path` instead of its present one, within its file system, atomically: whoever
/// looks sees the old name or the new one. With replace::yes it takes the place of what stands at `path`: of
/// anything but a directory for a file or link, of an empty directory for a directory.
///
/// Where the file system cannot rename without replacing (EINVAL), a file is linked to the new name and then
/// unlinked from the old one: as safe, but for a moment it has both; a directory gets EINVAL. A file without
/// a name (file_handle::temp_inode) is given its first. Of two names of one inode, POSIX keeps both: renaming
/// one to the other does nothing. Errors: EEXIST; EXDEV if the file systems differ, or `path` leads outside a
/// confined base; ENOENT as unlink; EISDIR, ENOTDIR, ENOTEMPTY, EINVAL (a directory into itself), ENOSPC,
/// EDQUOT, EROFS as `rename(2)`; EAGAIN as unlink; as path_handle::open for `path`. Allocates: nothing.
/// Blocks: for the file system.
[[nodiscard]] result<void> relink(const handle& open, const path_handle& base, path_view path,
                                  replace existing = replace::yes) noexcept;

/// Gives an open file one more name. The inode linked is the open one for sure: no race.
/// Errors: EEXIST; EPERM for directories and where the file system has no links; ENOENT if the file had names
/// and lost them all; EMLINK, EXDEV, ENOSPC, EDQUOT, EROFS as `linkat(2)`; as path_handle::open for `path`.
/// Allocates: nothing. Blocks: for the file system.
[[nodiscard]] result<void> link(const handle& open, const path_handle& base, path_view path) noexcept;

/// Removes the name `path`, of whatever but a directory.
/// Errors: EISDIR; ENOENT, EACCES, EPERM, EBUSY, EROFS as `unlinkat(2)`; as path_handle::open.
/// Allocates: nothing. Blocks: for the file system.
[[nodiscard]] result<void> remove(const path_handle& base, path_view path) noexcept;

/// Removes the empty directory `path`. Errors: ENOTDIR, ENOTEMPTY, and as remove.
[[nodiscard]] result<void> remove_directory(const path_handle& base, path_view path) noexcept;

}  // namespace sluice::io
