#pragma once

#include <span>

#include "sluice/io/path/file_status.hpp"

namespace sluice::io {

/// One name in a directory.
struct directory_entry {
    std::string_view name;  // in the storage passed to enumerate(); a zero follows it
    std::uint64_t inode = 0;
    file_type type = file_type::unknown;
    file_status status = {};  // the requested fields; none is known if the status is not available
};

/// The fields to list, the position to continue from, and the storage for the result.
struct enumerate_request {
    std::span<directory_entry> entries = {};
    /// For the names: at least limits::enumerate_storage_bytes_min; 64 KiB is a good size.
    std::span<char> storage = {};
    std::uint64_t position = 0;  // 0: from the start; else `next` of an earlier call
    stat_fields wanted = stat_fields::none;
    std::string_view pattern = {};  // a glob (see matches_glob) that names must match; empty: all
};

struct enumerate_result {
    std::span<directory_entry> entries;  // the filled front of the request's; empty: the end
    std::uint64_t next = 0;              // the position to continue from
};

/// A directory open for listing. It is a path_handle: paths can be opened relative to it, and its
/// confinement is that of the base from which it was opened.
class directory_handle : public path_handle {
public:
    constexpr directory_handle() noexcept = default;
    explicit constexpr directory_handle(native_handle native, confinement limit = confinement::none) noexcept
        : path_handle(native, limit) {}

    /// Opens, or creates, the directory `path`. A directory is never open for writing, so `mode`
    /// only decides whether it can be listed (read, write) or not (none, attr_read, attr_write).
    /// `permission_bits`, less the umask, are the permissions of a new directory.
    /// Errors: as path_handle::open; EEXIST; EINVAL for mode append and for creation
    /// truncate_existing and always_new: a directory cannot be emptied or replaced in one step;
    /// EROFS, ENOSPC, EDQUOT, EMLINK when creating; EINVAL when creating `.` or `..` beneath a
    /// confined base. Allocates: nothing. Blocks: for the file system.
    [[nodiscard]] static result<directory_handle> open(const path_handle& base, path_view path,
                                                       mode wanted = mode::read,
                                                       creation create = creation::open_existing,
                                                       unsigned permission_bits = 0777) noexcept;

    /// Lists a part of the directory, without "." and "..". Call again from `next` until no entries
    /// come. Every name that was in the directory throughout has then been returned once. A name
    /// created or removed during the listing may be returned or not.
    ///
    /// With `wanted`, the status of each entry (a link's own) is returned as well. An entry that
    /// vanishes before its status is read is skipped; if the status may not be read, no field is
    /// known. Positions are valid for this handle while it is open.
    /// Errors: EINVAL if the storage is too small; EBADF if not open for listing; ENOENT if the
    /// directory has been removed; EIO; EINVAL if entries is empty. Allocates: nothing. Blocks: for
    /// the file system.
    /// Thread safety: one thread at a time: the descriptor has one position.
    [[nodiscard]] result<enumerate_result> enumerate(const enumerate_request& request) const noexcept;

    /// Makes the names in the directory durable: creations, renames and removals in it survive a
    /// crash of the machine. (A barrier on a file makes the file durable, not its name.) Errors:
    /// EBADF if not open for listing; EIO, ENOSPC, EDQUOT. Allocates: nothing. Blocks: for the
    /// device.
    [[nodiscard]] result<void> barrier() const noexcept;
};

}  // namespace sluice::io
