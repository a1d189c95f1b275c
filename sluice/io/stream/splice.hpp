#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "sluice/io/call/splice_transfer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/task/awaitable.hpp"

namespace sluice::io {

// Transfers between handles that never pass through the program's memory.
//
// By reference. The kernel sends the pages in which it caches a file, not a copy: a write to the
// file before the peer has received them changes what the peer receives. This suits data that does
// not change, or whose readers expect no snapshot; it does not suit signed data.
//
// The file's side is never waited for asynchronously: pages that are not in memory are read from
// the device by the calling thread. Where files may be cold, read them (async_read) and write.
//
// Sockets become non-blocking by their first use here, unless it has no deadline: a blocking call
// without a deadline waits in the kernel. See socket_handle. Results count bytes. A smaller number
// than requested means that the file or stream has ended, or that the deadline, a cancellation or
// an error came after some bytes had been sent. No SIGPIPE; a thread that has a sigpipe_guard saves
// two system calls with each transfer.

/// Everything up to the end of the file or stream.
inline constexpr std::uint64_t to_the_end = std::numeric_limits<std::uint64_t>::max();

/// How to send a range if the file turns out to be shorter.
enum class short_file : std::uint8_t {
    ends_early,        ///< the result has the number of bytes; the receiver gets
                       ///< fewer than announced
    filled_with_zeros  ///< as if it still had that length, so that the length in a header stays
                       ///< correct
};

/// The range of a file to send, and a header.
struct send_file_request {
    /// Sent first, in one packet with the beginning of the file where it fits. Counted in the
    /// result.
    const_bytes_type header{};
    extent_type offset = 0;
    std::uint64_t length = to_the_end;
    short_file when_short = short_file::ends_early;  // with `to_the_end` there is nothing to fill
};

/// The place for the received bytes.
struct receive_file_request {
    extent_type offset = 0;
    std::uint64_t length = to_the_end;  // to the end of the stream
    /// Memory to copy through where the bytes cannot be moved by reference (no pipe is given, or
    /// the file is append-only): 256 KiB suffice. Without it, 64 KiB of the stack are used.
    bytes_type scratch{};
};

/// A pipe to splice through, where neither end is one: owned by the caller, used by one transfer at
/// a time, during which it must not be moved, and reusable without limit. One for each connection
/// or each loop suffices. One that was moved from can only be assigned to or destroyed.
class splice_pipe {
public:
    static constexpr std::size_t capacity_default = 1024 * 1024;

    /// Creates a pipe of at most this capacity; a smaller one where the system grants ordinary
    /// users less. Errors: EMFILE, ENFILE.
    [[nodiscard]] static result<splice_pipe> create(std::size_t capacity_bytes = capacity_default) noexcept;

    [[nodiscard]] std::size_t capacity() const noexcept { return transit_.capacity; }
    /// Returns the bytes that have left their source and not reached their target: only after a
    /// transfer that failed or was cancelled. From a file they are not lost; from a socket only
    /// this pipe has them.
    [[nodiscard]] std::size_t pending() const noexcept { return transit_.pending; }
    /// Discards the pending bytes; the next transfer does so as well.
    void discard() noexcept;

    /// For reading the pending bytes.
    [[nodiscard]] pipe_handle& reader() noexcept { return ends_.reader; }
    /// For the transfers; not for users.
    [[nodiscard]] transit_pipe& transit() noexcept { return transit_; }

private:
    splice_pipe(pipe_handle::pair ends, std::size_t capacity) noexcept
        : ends_(std::move(ends)), transit_(ends_.reader.native(), ends_.writer.native(), capacity) {}

    pipe_handle::pair ends_;
    transit_pipe transit_;
};

/// Sends part of a file to a socket or pipe, after a header. `through` a pipe it takes less CPU
/// time than without, for long ranges. A file that the kernel cannot splice is copied.
/// Errors: ETIMEDOUT, EPIPE, ECONNRESET, and those of reading the file. Allocates: nothing. Blocks:
/// until all is sent or the deadline passes.
[[nodiscard]] result<std::uint64_t> send_file_to(io_handle& file, io_handle& to,
                                                 const send_file_request& request,
                                                 deadline within = {}) noexcept;
[[nodiscard]] result<std::uint64_t> send_file_to(io_handle& file, io_handle& to,
                                                 const send_file_request& request, splice_pipe& through,
                                                 deadline within = {}) noexcept;

/// Writes the bytes of a socket or pipe to a file. From a socket they go `through` a pipe by
/// reference; without one, and to an append-only file, they are copied through `request.scratch`,
/// which a call without a deadline fills before it writes. If the file fails (ENOSPC), bytes that
/// had been received and not written are lost to the stream; `through.pending()` returns their
/// number. Errors: ETIMEDOUT, ECONNRESET, and those of writing the file. Allocates: nothing.
/// Blocks: until all has been received.
[[nodiscard]] result<std::uint64_t> receive_file_from(io_handle& from, io_handle& file,
                                                      const receive_file_request& request,
                                                      deadline within = {}) noexcept;
[[nodiscard]] result<std::uint64_t> receive_file_from(io_handle& from, io_handle& file,
                                                      const receive_file_request& request,
                                                      splice_pipe& through, deadline within = {}) noexcept;

/// Moves bytes from one stream to another, one of which is a pipe, until `length` bytes are moved
/// or the stream ends. Errors: ETIMEDOUT, EPIPE, ECONNRESET; EINVAL if neither is a pipe.
/// Allocates: nothing. Blocks: until then.
[[nodiscard]] result<std::uint64_t> splice_to(io_handle& from, io_handle& to,
                                              std::uint64_t length = to_the_end,
                                              deadline within = {}) noexcept;

/// Copies the content of one pipe to another, up to `length`; it can still be read from the first.
/// One step: it does not continue with bytes that arrive later, because the pipe's content begins
/// with the same bytes. Errors, Blocks: as splice_to.
[[nodiscard]] result<std::uint64_t> tee_to(pipe_handle& from, pipe_handle& to,
                                           std::uint64_t length = to_the_end, deadline within = {}) noexcept;

[[nodiscard]] inline auto try_send_file_to(io_handle& file, io_handle& to,
                                           const send_file_request& request) noexcept {
    return send_file_to(file, to, request, deadline::zero());
}
[[nodiscard]] inline auto try_receive_file_from(io_handle& from, io_handle& file,
                                                const receive_file_request& request) noexcept {
    return receive_file_from(from, file, request, deadline::zero());
}
[[nodiscard]] inline auto try_splice_to(io_handle& from, io_handle& to,
                                        std::uint64_t length = to_the_end) noexcept {
    return splice_to(from, to, length, deadline::zero());
}
[[nodiscard]] inline auto try_tee_to(pipe_handle& from, pipe_handle& to,
                                     std::uint64_t length = to_the_end) noexcept {
    return tee_to(from, to, length, deadline::zero());
}

/// The sender of async_send_file and similar functions: transfers between handles.
class splice_sender : public detail::handle_sender {
public:
    using result_type = result<std::uint64_t>;

    splice_sender(io_handle& waits_on, operation_kind kind, const splice_transfer& what, deadline within,
                  const char* name) noexcept
        : handle_sender(waits_on, within), transfer_(what), kind_(kind), name_(name) {}

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        configure_as(op, kind_);
        transfer_.restart();
        op.argument = &transfer_;
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure(error_of(op, name_));
        return op.transferred;
    }

    /// Returns how many of the sent bytes were zeros because the file has become shorter.
    [[nodiscard]] std::uint64_t filled() const noexcept { return transfer_.zeros; }

private:
    splice_transfer transfer_;
    operation_kind kind_;
    const char* name_;
};

/// The sender of send_file_to. It takes its place among the writes to the stream: header and file
/// never mix with the bytes written before and after. If it is cancelled after a part has been
/// sent, the operations that wait after it end as well. `to` needs a multiplexer, `file` does not.
/// Errors: as send_file_to, and ECANCELED.
[[nodiscard]] splice_sender async_send_file(io_handle& file, io_handle& to, const send_file_request& request,
                                            deadline within = {}) noexcept;
[[nodiscard]] splice_sender async_send_file(io_handle& file, io_handle& to, const send_file_request& request,
                                            splice_pipe& through, deadline within = {}) noexcept;

/// The sender of receive_file_from. It takes its place among the reads from the stream.
[[nodiscard]] splice_sender async_receive_file(io_handle& from, io_handle& file,
                                               const receive_file_request& request,
                                               deadline within = {}) noexcept;
[[nodiscard]] splice_sender async_receive_file(io_handle& from, io_handle& file,
                                               const receive_file_request& request, splice_pipe& through,
                                               deadline within = {}) noexcept;

/// Moves available bytes of `from` to `to`, and completes when at least one byte has been moved, as
/// a read does; 0 at the end of the stream. It waits for `from` only: while `to` is full it fails
/// with EAGAIN, and the caller awaits async_ready(to, direction::out). It is not ordered with
/// writes to `to`. One of the two is a pipe. Errors: as splice_to, EAGAIN, ECANCELED.
[[nodiscard]] splice_sender async_splice(io_handle& from, io_handle& to, std::uint64_t length = to_the_end,
                                         deadline within = {}) noexcept;
/// The sender of tee_to, with the rules of async_splice about waiting and order.
[[nodiscard]] splice_sender async_tee(pipe_handle& from, pipe_handle& to, std::uint64_t length = to_the_end,
                                      deadline within = {}) noexcept;

/// The awaitable form.
[[nodiscard]] inline auto co_send_file(io_handle& file, io_handle& to, const send_file_request& request,
                                       deadline within = {}) noexcept {
    return async_send_file(file, to, request, within);
}
[[nodiscard]] inline auto co_send_file(io_handle& file, io_handle& to, const send_file_request& request,
                                       splice_pipe& through, deadline within = {}) noexcept {
    return async_send_file(file, to, request, through, within);
}
[[nodiscard]] inline auto co_receive_file(io_handle& from, io_handle& file,
                                          const receive_file_request& request,
                                          deadline within = {}) noexcept {
    return async_receive_file(from, file, request, within);
}
[[nodiscard]] inline auto co_receive_file(io_handle& from, io_handle& file,
                                          const receive_file_request& request, splice_pipe& through,
                                          deadline within = {}) noexcept {
    return async_receive_file(from, file, request, through, within);
}
[[nodiscard]] inline auto co_splice(io_handle& from, io_handle& to, std::uint64_t length = to_the_end,
                                    deadline within = {}) noexcept {
    return async_splice(from, to, length, within);
}
[[nodiscard]] inline auto co_tee(pipe_handle& from, pipe_handle& to, std::uint64_t length = to_the_end,
                                 deadline within = {}) noexcept {
    return async_tee(from, to, length, within);
}

}  // namespace sluice::io
