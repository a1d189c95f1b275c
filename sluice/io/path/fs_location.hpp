#pragma once

#include <string>

#include "sluice/io/path/path_handle.hpp"

// Names of open files. Free functions, because they mean the same for a file, a directory and a
// symbolic link.
//
// Linux renames and removes by name, never by descriptor. So these functions ask the kernel for the
// present name of an open file, open that name's directory, check that the name there still is the
// open inode's, and only then act. They follow renames by other processes up to that point. A race
// remains between the last check and the action: a process that puts another inode under the same
// name at that moment has that inode renamed or removed. Within a directory, only its owner (sticky
// bit) or users with write permission can do so. The functions need /proc.
namespace sluice::io {

enum class replace : bool { no, yes };

/// The present name of an open file: the directory that has it, and the name in that directory.
struct present_place {
    path_handle directory;
    std::string name;
};

/// Returns the present name of an open file, directory or link; one of its names, if it has
/// several. It may change at any moment. Errors: ENOENT if it has no name, or no longer the one
/// that it was opened by; EBUSY for the root directory; EAGAIN if it was renamed repeatedly during
/// the call. Allocates: the name. Blocks: for the file system.
[[nodiscard]] result<present_place> place_of(const handle& open) noexcept;

/// Removes the present name of an open file (or of an empty directory). The handle stays usable.
/// Errors: ENOENT if it has no name, or no longer the one that it was opened by; ENOTEMPTY, EBUSY,
/// EACCES, EPERM, EROFS as `unlinkat(2)`; EAGAIN if it was renamed repeatedly during the call.
/// Allocates: nothing. Blocks: for the file system.
[[nodiscard]] result<void> unlink(const handle& open) noexcept;
/// The same for callers that know the path by which it was opened: while the path is valid, /proc
/// is not needed.
[[nodiscard]] result<void> unlink(const handle& open, const path_handle& base, path_view likely) noexcept;

/// Renames an open file to `path`, within its file system, atomically: other processes see the old
/// name or the new one. With replace::yes it replaces the file at `path`: a file or link replaces
/// anything except a directory, a directory replaces an empty directory.
///
/// Where the file system cannot rename without replacing (EINVAL), a file is linked to the new name
/// and then unlinked from the old one. This is as safe, but the file has both names for a moment; a
/// directory gets EINVAL. A file without a name (file_handle::temp_inode) is given its first. If
/// both names belong to the inode, POSIX keeps both: renaming one to the other has no effect.
/// Errors: EEXIST; EXDEV if the file systems differ, or `path` leads outside a confined base;
/// ENOENT as unlink; EISDIR, ENOTDIR, ENOTEMPTY, EINVAL (a directory into itself), ENOSPC, EDQUOT,
/// EROFS as `rename(2)`; EAGAIN as unlink; as path_handle::open for `path`. Allocates: nothing.
/// Blocks: for the file system.
[[nodiscard]] result<void> relink(const handle& open, const path_handle& base, path_view path,
                                  replace existing = replace::yes) noexcept;

/// Gives an open file one more name. There is no race: the linked inode is always the open one.
/// Errors: EEXIST; EPERM for directories and where the file system has no links; ENOENT if the file
/// had names and lost them all; EMLINK, EXDEV, ENOSPC, EDQUOT, EROFS as `linkat(2)`; as
/// path_handle::open for `path`. Allocates: nothing. Blocks: for the file system.
[[nodiscard]] result<void> link(const handle& open, const path_handle& base, path_view path) noexcept;

/// Removes the name `path`, unless it is a directory. Errors: EISDIR; ENOENT, EACCES, EPERM, EBUSY,
/// EROFS as `unlinkat(2)`; as path_handle::open. Allocates: nothing. Blocks: for the file system.
[[nodiscard]] result<void> remove(const path_handle& base, path_view path) noexcept;

/// Removes the empty directory `path`. Errors: ENOTDIR, ENOTEMPTY, and as remove.
[[nodiscard]] result<void> remove_directory(const path_handle& base, path_view path) noexcept;

}  // namespace sluice::io
