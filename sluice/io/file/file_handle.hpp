#pragma once

#include <optional>
#include <span>

#include "sluice/base/deadline.hpp"
#include "sluice/io/file/clone.hpp"
#include "sluice/io/file/extent_guard.hpp"
#include "sluice/io/handle/io_handle.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::io {

/// More ways to open a file.
enum class open_flag : std::uint8_t {
    none = 0,
    unlink_on_first_close = 1,  ///< its present name is removed when this handle
                                ///< closes; see fs_location.hpp
    no_follow = 2,              ///< ELOOP if the path itself is a symbolic link
    /// EAGAIN instead of waiting until a lease (fcntl F_SETLEASE) on the file is released.
    no_wait = 4,
};
[[nodiscard]] constexpr open_flag operator|(open_flag a, open_flag b) noexcept {
    return static_cast<open_flag>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
[[nodiscard]] constexpr bool has(open_flag set, open_flag wanted) noexcept {
    return (static_cast<unsigned>(set) & static_cast<unsigned>(wanted)) != 0;
}

/// An open file or block device: bytes at offsets. Reading, writing and barriers are those of
/// io_handle; its names are handled in `fs_location.hpp`, its status in `file_status.hpp`,
/// attributes in `xattr.hpp`.
///
/// Transfers: a read at or past the end returns no bytes; one that reaches the end returns the
/// bytes before it. A write past the end lengthens the file and leaves a hole. In mode append every
/// write goes to the end, whatever its offset, and the bytes of one system call (1024 segments, 2
/// GiB) do not mix with other appends.
class file_handle : public io_handle {
public:
    constexpr file_handle() noexcept = default;
    explicit constexpr file_handle(native_handle native, open_flag flags = open_flag::none) noexcept
        : io_handle(native), flags_(flags) {}
    file_handle(file_handle&& other) noexcept
        : io_handle(std::move(other)), flags_(std::exchange(other.flags_, open_flag::none)) {}
    file_handle& operator=(file_handle&& other) noexcept;
    ~file_handle();

    /// Opens, or creates, the file or block device `path`. `permission_bits`, less the umask, are
    /// the permissions of a new file.
    ///
    /// Modes none, attr_read and attr_write need no permission on the file, and never touch the
    /// other end of a FIFO or a device. Such a handle is for status_of, set_times, relink and
    /// similar calls. `always_new` creates an empty file under a temporary name in the same
    /// directory and renames it to `path`. The temporary name is ".sluice-" and 16 digits, and
    /// remains if the machine stops before the rename. If `path` is a symbolic link, it is
    /// replaced, not followed.
    /// Errors: as path_handle::open; EEXIST; EISDIR; ENXIO for a FIFO, a socket, or a device
    /// without a driver; EACCES, EPERM, EROFS, ETXTBSY, ENOSPC, EDQUOT; EAGAIN if no_wait; EINVAL
    /// if the file system has no direct I/O, if a mode that does not write should truncate, or if
    /// one that opens nothing (none, attr_*) should create. Allocates: nothing. Blocks: for the
    /// file system; until a lease is released, unless no_wait.
    [[nodiscard]] static result<file_handle> open(const path_handle& base, path_view path,
                                                  mode wanted = mode::read,
                                                  creation create = creation::open_existing,
                                                  caching cached = caching::all,
                                                  open_flag flags = open_flag::none,
                                                  unsigned permission_bits = 0666) noexcept;

    /// Creates a file with a random name in `directory`, readable and writable by its owner, by
    /// default removed again when closed. Errors: as open. Allocates: nothing. Blocks: for the file
    /// system.
    [[nodiscard]] static result<file_handle> temp_file(
        const path_handle& directory, caching cached = caching::temporary,
        open_flag flags = open_flag::unlink_on_first_close) noexcept;

    /// How to create an inode without a name. `named_first` is for file systems without O_TMPFILE;
    /// `automatic` chooses it where needed.
    enum class temp_inode_method : bool { automatic, named_first };

    /// Creates a file without a name on the file system of `directory`. It vanishes when closed,
    /// even by a crash, unless relink or link gives it a name. Where the file system lacks
    /// O_TMPFILE it is created and unlinked at once, and cannot be named any more. Errors: as open.
    /// Allocates: nothing. Blocks: for the file system.
    [[nodiscard]] static result<file_handle> temp_inode(
        const path_handle& directory, caching cached = caching::temporary,
        temp_inode_method method = temp_inode_method::automatic) noexcept;

    /// As io_handle::close, after unlinking if unlink_on_first_close. Errors: also those of unlink;
    /// the handle is closed even then. A name that no longer exists is not an error.
    [[nodiscard]] result<void> close() noexcept;
    /// As handle::release; the new owner is also responsible for unlinking.
    [[nodiscard]] native_handle release() noexcept;

    [[nodiscard]] constexpr open_flag flags() const noexcept { return flags_; }

    /// Returns the file's length, or the device's. Errors: EIO, ESTALE. Allocates: nothing.
    [[nodiscard]] result<extent_type> maximum_extent() const noexcept;

    /// Makes the file exactly `length` long: truncates it, or adds a hole. Returns the new length.
    /// Errors: EINVAL if not open for writing; EFBIG; EIO; ENOSPC; EPERM (sealed, or append-only
    /// inode); ETXTBSY. Allocates: nothing. Blocks: for the file system.
    [[nodiscard]] result<extent_type> truncate(extent_type length) noexcept;

    /// Returns the ranges within `range` that have data, in ascending order, as many as `storage`
    /// can hold, as a span of its front. If it is full there may be more: continue from the end of
    /// the last. The ranges between them are holes, which read as zeros. A file system without
    /// holes reports everything as data.
    /// Errors: EIO; EINVAL if storage is empty. Allocates: nothing. Blocks: for the file system.
    /// The result is a snapshot: concurrent writes may have changed the extents.
    [[nodiscard]] result<std::span<extent_pair>> extents(extent_pair range,
                                                         std::span<extent_pair> storage) const noexcept;

    /// How to create zeros. `written` is for file systems that do not support holes; `automatic`
    /// chooses it where needed, `punched` fails with EOPNOTSUPP there.
    enum class zero_method : std::uint8_t { automatic, written, punched };

    /// Makes a range read as zeros and frees its blocks; where the file system cannot free them,
    /// writes zeros. Does not change the file's length: the part of the range past the end is
    /// skipped. Errors: EBADF if not open for writing, or append-only; EIO, ENOSPC; ETXTBSY; EINVAL
    /// with direct I/O if zeros must be written and the range is not aligned. Allocates: nothing.
    /// Blocks: for the file system.
    [[nodiscard]] result<void> zero(extent_pair range, zero_method method = zero_method::automatic) noexcept;

    /// Copies the source range, up to this file's end, to `destination` at `destination_offset`.
    /// Shares blocks if the file system supports that, and copies them otherwise. Holes stay holes.
    /// The destination is lengthened if necessary, never shortened. Not atomic: concurrent reads
    /// and writes see the copy in progress.
    /// Errors: EBADF if this is not readable, or destination not writable or append-only; EINVAL if
    /// both are the same file and the ranges overlap; ENOSPC, EDQUOT, EFBIG, EIO, ETXTBSY: a part
    /// may have been copied. Allocates: nothing (64 KiB of stack). Blocks: until done, or stopped
    /// by the observer.
    [[nodiscard]] result<clone_result> clone_extents_to(file_handle& destination,
                                                        const clone_request& request = {},
                                                        const clone_options& options = {}) const noexcept;

    /// Locks a range of bytes against other handles, in this and in other processes, that also
    /// request a lock (advisory; fcntl's locks of open file descriptions). The range may be past
    /// the end.
    ///
    /// Locks of one handle do not exclude each other: a second lock on bytes that it has locked
    /// converts them, and the guard that is released first unlocks them. Handles that share one
    /// description (dup, fork) are one handle here. Threads of a program need a handle each, or
    /// sync::range_lock. Deadlocks are not detected.
    ///
    /// `within` zero tries once. A deadline is kept by trying again after pauses of 50 µs, doubled
    /// up to 5 ms, because the kernel has no timed wait: such a waiter is not in the kernel's queue
    /// and may be overtaken. A wait without a deadline is in the kernel's queue. Errors: ETIMEDOUT
    /// if others hold it; EBADF if shared and not readable, or exclusive and not writable; EINVAL
    /// if length is 0; EOVERFLOW past 2^63-1; ENOLCK; EOPNOTSUPP, ENOSYS from network file systems.
    /// Allocates: nothing. Blocks: until locked or the deadline passes.
    [[nodiscard]] result<extent_guard> lock_range(extent_pair range, lock_kind kind,
                                                  deadline within = {}) noexcept;

private:
    [[nodiscard]] result<void> unlink_if_asked() noexcept;

    open_flag flags_ = open_flag::none;
};

}  // namespace sluice::io
