#pragma once

#include <span>

#include "sluice/io/path/path_handle.hpp"

namespace sluice::io {

/// A symbolic link itself, not its target. A handle instead of a pair of functions, so that
/// status_of, relink and unlink apply to it as to a file.
class symlink_handle : public handle {
public:
    constexpr symlink_handle() noexcept = default;
    explicit constexpr symlink_handle(native_handle native) noexcept : handle(native) {}

    /// Opens the link at `path`.
    /// Errors: as path_handle::open; EINVAL if it is not a symbolic link. Allocates: nothing.
    /// Blocks: for the file system.
    [[nodiscard]] static result<symlink_handle> open(const path_handle& base, path_view path) noexcept;

    /// Creates a link at `path` that leads to `target`, and opens it. The target is any text: the
    /// confinement of a process that follows the link decides whether it may. `always_new`
    /// atomically replaces any file at `path` except a directory; `if_needed` opens an existing
    /// link, whatever its target. Errors: as path_handle::open; EEXIST; EISDIR when a directory
    /// would be replaced; EINVAL if creation is open_existing or truncate_existing; ENOSPC, EDQUOT,
    /// EROFS, EPERM (the file system has no links). Allocates: nothing. Blocks: for the file
    /// system.
    [[nodiscard]] static result<symlink_handle> create(
        const path_handle& base, path_view path, path_view target,
        creation create = creation::only_if_not_exist) noexcept;

    /// Returns the target of the link, as text in `storage`. Errors: ENAMETOOLONG if the storage is
    /// too small (limits::path_bytes_max always suffices); EIO. Allocates: nothing. Blocks: for the
    /// file system.
    [[nodiscard]] result<std::string_view> target(std::span<char> storage) const noexcept;
};

}  // namespace sluice::io
