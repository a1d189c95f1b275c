#pragma once

#include <optional>

#include "sluice/io/call/handle.hpp"
#include "sluice/io/path/path_handle.hpp"
#include "sluice/io/path/status_fields.hpp"

namespace sluice::io {

/// Returns the status of an open file; works with every mode, `none` included. Errors: EIO, ESTALE,
/// EACCES from network file systems. Allocates: nothing. Blocks: for the file system.
[[nodiscard]] result<file_status> status_of(const handle& open,
                                            stat_fields wanted = stat_fields::all) noexcept;

enum class follow : bool { no, yes };

/// Returns the status of the file at `path`. Follows a symbolic link only if `links` requests it.
/// Errors: as path_handle::open, but EMFILE and ENFILE only relative to a confined base. Allocates:
/// nothing. Blocks: for the file system.
[[nodiscard]] result<file_status> status_at(const path_handle& base, path_view path,
                                            follow links = follow::no,
                                            stat_fields wanted = stat_fields::all) noexcept;

/// New times of an inode; those without a value do not change.
struct file_times {
    std::optional<file_status::time_point> accessed = {};
    std::optional<file_status::time_point> modified = {};
};

/// Sets times, to the nanosecond if the file system stores nanoseconds; otherwise it rounds down.
/// `changed` becomes the current time. Errors: EPERM, EACCES if neither owner nor permitted; EROFS;
/// EINVAL if the file system cannot represent the time. On a handle of mode none, attr_read or
/// attr_write also EINVAL before Linux 5.8. Allocates: nothing.
[[nodiscard]] result<void> set_times(const handle& open, const file_times& times) noexcept;

}  // namespace sluice::io
