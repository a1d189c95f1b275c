#pragma once

#include "sluice/io/path/path_handle.hpp"

// Internal to the host volume: the file system's attribute that marks a file as compressed
// (FS_COMPR_FL, as `chattr +c` sets it). The status of a file has it.

namespace sluice::vfs {

/// Returns whether files in the file system of `directory` can be marked. Tests it with a file
/// without a name. Blocks: for the file system.
[[nodiscard]] bool can_mark_compressed(const io::path_handle& directory) noexcept;

/// Marks a file or directory as compressed, or as not compressed. New names in a directory inherit
/// its mark. Whether, and from when on, the file system compresses anything is its own choice.
/// Errors: EOPNOTSUPP; EACCES, EPERM, EROFS; EBUSY if another process has a lease on the file.
/// Blocks: for the file system.
[[nodiscard]] result<void> mark_compressed(const io::handle& open, bool is_compressed) noexcept;

}  // namespace sluice::vfs
