#pragma once

#include "sluice/base/deadline.hpp"
#include "sluice/io/handle.hpp"
#include "sluice/io/request.hpp"

namespace sluice::io {

class io_multiplexer;
struct registration;

/// A handle that transfers bytes: the parent of file_handle, pipe_handle and socket_handle.
///
/// Every operation has three spellings with one meaning: `read` blocks, `co_read` suspends a task,
/// `async_read` is a sender. They differ only in who waits. This class has the blocking ones; awaitables are
/// in `awaitable.hpp`, senders in `sender.hpp`; both go through the handle's multiplexer.
///
/// Transfers. A read ends when at least one byte has come (files: when the request is filled or the file
/// ends). A write ends when everything is written. A shorter result means: end of file (reads), or that the
/// deadline passed, the operation was cancelled or an error struck after some bytes had gone; an error is
/// then returned by the next operation. EINTR is never seen: the operation is resumed.
class io_handle : public handle {
public:
    constexpr io_handle() noexcept = default;
    explicit constexpr io_handle(native_handle native) noexcept : handle(native) {}
    io_handle(io_handle&& other) noexcept
        : handle(std::move(other)), registration_(std::exchange(other.registration_, nullptr)) {}
    io_handle& operator=(io_handle&& other) noexcept;
    ~io_handle();

    /// Reads into the buffers, at `offset` of what is seekable. See "Transfers" above.
    ///
    /// `deadline` zero fails at once with ETIMEDOUT instead of waiting; on a regular file it means "only what
    /// is in memory". A later deadline on a regular file is kept by asking for read-ahead and looking again.
    /// Errors: ETIMEDOUT, and those of `read(2)`; EBADF if not readable. Allocates: nothing.
    /// Blocks: until a byte is there or the deadline passes.
    io_result<buffers_type> read(io_request<buffers_type> request, deadline within = {}) noexcept;
    io_result<bytes_type> read(io_request<bytes_type> request, deadline within = {}) noexcept;

    /// Writes the buffers, at `offset` of what is seekable. See "Transfers" above.
    ///
    /// On a file whose writes cannot be made not to wait (ext4, tmpfs) the deadline is looked at before the
    /// write, not within it: a buffered write waits only when too much memory is dirty. Errors: ETIMEDOUT if
    /// nothing was written in time, and those of `write(2)`, EPIPE without a signal on sockets. Allocates:
    /// nothing. Blocks: until everything is written or the deadline passes.
    io_result<const_buffers_type> write(io_request<const_buffers_type> request,
                                        deadline within = {}) noexcept;
    io_result<const_bytes_type> write(io_request<const_bytes_type> request, deadline within = {}) noexcept;

    /// Makes what was written durable, or starts to. Orders earlier writes before later ones. On pipes and
    /// sockets there is nothing to do. `range` limits a nowait barrier to part of a file; the waiting kinds
    /// take all of it. Errors: EIO, ENOSPC, EDQUOT: written data has been lost. Allocates: nothing. Blocks:
    /// the waiting kinds, with no deadline: the kernel offers none.
    io_result<const_buffers_type> barrier(barrier_kind kind = barrier_kind::wait_all,
                                          io_request<const_buffers_type> range = {}) noexcept;

    /// `read` and `write` that fail rather than wait, or that wait no longer than said.
    template <class Buffers>
    auto try_read(io_request<Buffers> request) noexcept {
        return read(request, deadline::zero());
    }
    template <class Buffers, class Rep, class Period>
    auto try_read_for(io_request<Buffers> request, std::chrono::duration<Rep, Period> within) noexcept {
        return read(request, deadline(within));
    }
    template <class Buffers, class Clock, class Duration>
    auto try_read_until(io_request<Buffers> request,
                        std::chrono::time_point<Clock, Duration> until) noexcept {
        return read(request, deadline(until));
    }
    template <class Buffers>
    auto try_write(io_request<Buffers> request) noexcept {
        return write(request, deadline::zero());
    }
    template <class Buffers, class Rep, class Period>
    auto try_write_for(io_request<Buffers> request, std::chrono::duration<Rep, Period> within) noexcept {
        return write(request, deadline(within));
    }
    template <class Buffers, class Clock, class Duration>
    auto try_write_until(io_request<Buffers> request,
                         std::chrono::time_point<Clock, Duration> until) noexcept {
        return write(request, deadline(until));
    }

    /// The multiplexer asynchronous operations on this handle go through; null if none is set.
    [[nodiscard]] io_multiplexer* multiplexer() const noexcept;

    /// Attaches this handle to a multiplexer (by default the calling thread's own), or, given null, detaches
    /// it. A handle without one adopts the one that runs on the calling thread, or else the thread's own,
    /// when its first asynchronous operation is made (P2052R0 4.3.3); if that fails, the operation ends with
    /// the error. A handle must be detached or closed before the thread whose multiplexer it has ends.
    /// Errors: EBUSY while i/o is pending on the handle; EPERM, ENOMEM, ENOSPC from the kernel. Allocates:
    /// amortised, in the multiplexer's table of handles. Blocks: no.
    [[nodiscard]] result<void> set_multiplexer(io_multiplexer* multiplexer) noexcept;
    [[nodiscard]] result<void> set_multiplexer() noexcept;

    /// Says that i/o on this file is not expected to wait for a device, as on tmpfs (where it is set by
    /// itself): then start() reads and writes it in place by plain calls, some 10 % cheaper for a cached page
    /// than asking the kernel not to wait. What is not cached after all waits inside start(). Only while no
    /// multiplexer is set.
    void assume_in_memory(bool is_in_memory) noexcept;

    /// As handle::close. It is a programming error to close, or destroy, a handle with i/o pending.
    [[nodiscard]] result<void> close() noexcept;
    [[nodiscard]] native_handle release() noexcept;

    /// Says that O_NONBLOCK has been set on the description, so that nobody asks again. For transfers; not
    /// for users.
    void note_nonblocking() noexcept;

    /// The multiplexer's record of this handle, null without a multiplexer. For senders; not for users.
    [[nodiscard]] registration* registered() const noexcept { return registration_; }

    /// The same, after adopting the calling thread's multiplexer if there is none. If that fails, a record on
    /// which every operation ends with the error. For senders; not for users.
    [[nodiscard]] registration& adopted() noexcept {
        if (registration_ != nullptr) [[likely]]
            return *registration_;
        return adopt();
    }

private:
    [[nodiscard]] registration& adopt() noexcept;
    void detach_for_ever() noexcept;

    registration* registration_ = nullptr;
};

}  // namespace sluice::io
