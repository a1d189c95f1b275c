#pragma once

#include "sluice/base/deadline.hpp"
#include "sluice/io/call/request.hpp"
#include "sluice/io/handle/multiplexable_handle.hpp"

namespace sluice::io {

/// A handle that transfers bytes: the parent of file_handle, pipe_handle and socket_handle.
///
/// Every operation has three forms with one meaning: `read` blocks, `co_read` suspends a task,
/// `async_read` is a sender. This class has the blocking ones; awaitables are in `awaitable.hpp`,
/// senders in `sender.hpp`; both use the handle's multiplexer.
///
/// Transfers. A read ends when at least one byte has been read (files: when the request is filled
/// or the file ends). A write ends when everything is written. A shorter result means: end of file
/// (reads), or that the deadline passed, the operation was cancelled or an error occurred after
/// some bytes had been transferred. The next operation then returns the error. EINTR is never
/// returned: the operation is resumed.
class io_handle : public multiplexable_handle {
public:
    constexpr io_handle() noexcept = default;
    explicit constexpr io_handle(native_handle native) noexcept : multiplexable_handle(native) {}

    /// Reads into the buffers. `offset` applies to seekable handles only. See "Transfers" above.
    ///
    /// `deadline` zero fails at once with ETIMEDOUT instead of waiting; on a regular file it means
    /// "only data that is in memory". A later deadline on a regular file is kept by requesting
    /// read-ahead and checking again.
    /// Errors: ETIMEDOUT, and those of `read(2)`; EBADF if not readable. Allocates: nothing.
    /// Blocks: until a byte is there or the deadline passes.
    io_result<buffers_type> read(io_request<buffers_type> request, deadline within = {}) noexcept;
    io_result<bytes_type> read(io_request<bytes_type> request, deadline within = {}) noexcept;

    /// Writes the buffers. `offset` applies to seekable handles only. See "Transfers" above.
    ///
    /// On a file whose writes cannot be made not to wait (ext4, tmpfs), the deadline is checked
    /// before the write, not during it: a buffered write waits only when too much memory is dirty.
    /// Errors: ETIMEDOUT if nothing was written in time, and those of `write(2)`, EPIPE without a
    /// signal on sockets. Allocates: nothing. Blocks: until everything is written or the deadline
    /// passes.
    io_result<const_buffers_type> write(io_request<const_buffers_type> request,
                                        deadline within = {}) noexcept;
    io_result<const_bytes_type> write(io_request<const_bytes_type> request, deadline within = {}) noexcept;

    /// Writes at least one byte of the buffers, and returns after one successful system call: for
    /// callers that keep count themselves. Otherwise as write. A message is written completely.
    /// Errors: as write. Allocates: nothing. Blocks: until some bytes are written or the deadline
    /// passes.
    io_result<const_buffers_type> write_some(io_request<const_buffers_type> request,
                                             deadline within = {}) noexcept;
    io_result<const_bytes_type> write_some(io_request<const_bytes_type> request,
                                           deadline within = {}) noexcept;

    /// Makes earlier writes durable, or starts to, and orders them before later ones. Has no effect
    /// on pipes and sockets. `range` limits a nowait barrier to part of a file, as long as its
    /// buffers together; the waiting kinds include the rest of the file.
    ///
    /// The kernel cannot end a barrier early, so the deadline decides only whether it begins.
    /// `deadline` zero fails with ETIMEDOUT instead of waiting; the nowait kinds ignore it.
    /// Returns the buffers of the range. Errors: ETIMEDOUT; EIO, ENOSPC, EDQUOT: written data has
    /// been lost.
    /// Allocates: nothing. Blocks: the waiting kinds, until the device has the data.
    io_result<const_buffers_type> barrier(barrier_kind kind = barrier_kind::wait_all,
                                          io_request<const_buffers_type> range = {},
                                          deadline within = {}) noexcept;

    /// The same with a deadline: `try_` fails with ETIMEDOUT instead of waiting, `_for` and
    /// `_until` wait at most until the limit. They call the member functions of the handle's own
    /// class.
    template <class Self, class Buffers>
    auto try_read(this Self& self, io_request<Buffers> request) noexcept {
        return self.read(request, deadline::zero());
    }
    template <class Self, class Buffers, class Rep, class Period>
    auto try_read_for(this Self& self, io_request<Buffers> request,
                      std::chrono::duration<Rep, Period> within) noexcept {
        return self.read(request, deadline(within));
    }
    template <class Self, class Buffers, class Clock, class Duration>
    auto try_read_until(this Self& self, io_request<Buffers> request,
                        std::chrono::time_point<Clock, Duration> until) noexcept {
        return self.read(request, deadline(until));
    }
    template <class Self, class Buffers>
    auto try_write(this Self& self, io_request<Buffers> request) noexcept {
        return self.write(request, deadline::zero());
    }
    template <class Self, class Buffers, class Rep, class Period>
    auto try_write_for(this Self& self, io_request<Buffers> request,
                       std::chrono::duration<Rep, Period> within) noexcept {
        return self.write(request, deadline(within));
    }
    template <class Self, class Buffers, class Clock, class Duration>
    auto try_write_until(this Self& self, io_request<Buffers> request,
                         std::chrono::time_point<Clock, Duration> until) noexcept {
        return self.write(request, deadline(until));
    }
    template <class Self, class Buffers>
    auto try_write_some(this Self& self, io_request<Buffers> request) noexcept {
        return self.write_some(request, deadline::zero());
    }
    template <class Self, class Buffers, class Rep, class Period>
    auto try_write_some_for(this Self& self, io_request<Buffers> request,
                            std::chrono::duration<Rep, Period> within) noexcept {
        return self.write_some(request, deadline(within));
    }
    template <class Self, class Buffers, class Clock, class Duration>
    auto try_write_some_until(this Self& self, io_request<Buffers> request,
                              std::chrono::time_point<Clock, Duration> until) noexcept {
        return self.write_some(request, deadline(until));
    }
    template <class Self>
    auto try_barrier(this Self& self, barrier_kind kind = barrier_kind::wait_all,
                     io_request<const_buffers_type> range = {}) noexcept {
        return self.barrier(kind, range, deadline::zero());
    }
    template <class Self, class Rep, class Period>
    auto try_barrier_for(this Self& self, barrier_kind kind, io_request<const_buffers_type> range,
                         std::chrono::duration<Rep, Period> within) noexcept {
        return self.barrier(kind, range, deadline(within));
    }
    template <class Self, class Clock, class Duration>
    auto try_barrier_until(this Self& self, barrier_kind kind, io_request<const_buffers_type> range,
                           std::chrono::time_point<Clock, Duration> until) noexcept {
        return self.barrier(kind, range, deadline(until));
    }

    /// Sets whether I/O on this file is expected not to wait for a device, as on tmpfs (where it is
    /// set automatically). Then start() reads and writes the file in place with plain calls, which
    /// costs about 10% less for a cached page than calls with a flag not to wait. start() itself
    /// then waits for a page that is not cached, or that has been swapped out. With false, start()
    /// does not wait, on tmpfs either: if the kernel does not support such reads, a worker thread
    /// reads the pages. Only while no multiplexer is set.
    void assume_in_memory(bool is_in_memory) noexcept;
};

}  // namespace sluice::io
