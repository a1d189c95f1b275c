#pragma once

#include <cstddef>

#include "sluice/io/handle/io_handle.hpp"
#include "sluice/io/path/path_handle.hpp"

namespace sluice::io {

/// One end of a pipe: anonymous, or a named FIFO.
///
/// Ends of pipes created or opened here are internally non-blocking, so that a try never waits; the
/// blocking calls wait by polling. A read returns no bytes once every writer has closed. A write
/// after the reader has closed fails with EPIPE, and raises SIGPIPE unless the program ignores it:
/// Linux before 6.18 has no flag against that.
class pipe_handle : public io_handle {
public:
    constexpr pipe_handle() noexcept = default;
    explicit constexpr pipe_handle(native_handle native) noexcept : io_handle(native) {}

    struct pair;

    /// Creates an anonymous pipe. `capacity_bytes` 0 selects the system's default (64 KiB); the
    /// kernel rounds up to a power of two of pages and refuses more than /proc/sys/fs/pipe-max-size
    /// to ordinary users. Errors: EMFILE, ENFILE; EPERM for too large a capacity. Allocates:
    /// nothing.
    [[nodiscard]] static result<pair> anonymous(std::size_t capacity_bytes = 0) noexcept;

    /// Creates a named FIFO, relative to `base`. The process's umask applies. Errors: EEXIST, and
    /// those of path_handle::open for its directory. Allocates: nothing.
    [[nodiscard]] static result<void> create(const path_handle& base, path_view path,
                                             unsigned permission_bits = 0600) noexcept;
    [[nodiscard]] static result<void> create(path_view path, unsigned permission_bits = 0600) noexcept {
        return create({}, path, permission_bits);
    }

    /// Opens an end of a named FIFO, relative to `base`: the reading end (mode::read) or the
    /// writing end (mode::write, mode::append), without waiting for the other end. Until a first
    /// writer has come, a read returns no bytes, as after the last one has closed it; waiting for
    /// readiness (async_ready) waits for its first bytes. Errors: ENXIO to write when no process
    /// has it open to read; EINVAL if it is not a FIFO, or for another mode; and those of
    /// path_handle::open. Allocates: nothing. Blocks: for the file system.
    [[nodiscard]] static result<pipe_handle> open(const path_handle& base, path_view path,
                                                  mode end) noexcept {
        return open(base, path, end, deadline::zero());
    }
    [[nodiscard]] static result<pipe_handle> open(path_view path, mode end) noexcept {
        return open({}, path, end, deadline::zero());
    }
    /// The same, but waits for the other end to be opened. With a deadline it tries again at
    /// growing intervals of up to 10 ms, because the kernel has no such wait with a limit. Errors:
    /// ETIMEDOUT, or with a deadline of zero ENXIO; and as above. Blocks: until another process has
    /// the other end open.
    [[nodiscard]] static result<pipe_handle> open(const path_handle& base, path_view path, mode end,
                                                  deadline within) noexcept;
    [[nodiscard]] static result<pipe_handle> open(path_view path, mode end, deadline within) noexcept {
        return open({}, path, end, within);
    }

    /// Opens our own handle of an inherited pipe or terminal, such as standard input (0) or output
    /// (1). The descriptor stays the caller's, and keeps that end open.
    ///
    /// The parent process shares the open file description of these descriptors, so setting
    /// O_NONBLOCK there would break other programs. The object is therefore opened again, through
    /// /proc/self/fd, which creates a description of our own. Where that is refused (no /proc,
    /// another user's pipe, a pipe without a reader), the description is shared after all and stays
    /// in blocking mode, and each call passes a flag not to wait. A named FIFO or a terminal can
    /// then, rarely, wait anyway, when another process takes the bytes first.
    /// Errors: EINVAL if it is neither pipe nor terminal (file_handle and socket_handle have their
    /// own); EBADF, EMFILE. Allocates: nothing.
    [[nodiscard]] static result<pipe_handle> adopt(int descriptor) noexcept;

    /// Returns, or sets, the capacity in bytes. The kernel rounds a new value up, and refuses less
    /// than the present content. Errors: EBADF for a terminal; setting: EBUSY, and EPERM as for
    /// anonymous(). Allocates: nothing.
    [[nodiscard]] result<std::size_t> capacity() const noexcept;
    [[nodiscard]] result<void> set_capacity(std::size_t bytes) noexcept;
};

struct pipe_handle::pair {
    pipe_handle reader;
    pipe_handle writer;
};

}  // namespace sluice::io
