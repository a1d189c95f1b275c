#pragma once

#include <chrono>
#include <cstddef>

namespace sluice::io::limits {

/// Segments of memory that one system call takes (IOV_MAX of Linux); a longer request is served in
/// several.
inline constexpr std::size_t pieces_per_call_max = 1024;

/// Segments of neighbouring requests on a stream that share one system call.
inline constexpr std::size_t gathered_pieces_max = 64;

/// Operations completed, including those started by receivers, before complete_io returns to its
/// caller although more could be completed. Keeps a handle that is always ready from starving the
/// others.
inline constexpr int completions_per_pass_max = 256;

/// Operations that a coroutine may complete without suspending before it must let others run.
inline constexpr int inline_completions_max = 64;

/// Posted items invoked in one pass, so that items that post themselves again cannot delay the I/O.
inline constexpr int posted_items_per_pass_max = 1024;

/// Receive pools of one multiplexer whose buffers the kernel provides; the buffers of further pools
/// are read into instead.
inline constexpr std::size_t receive_groups_max = 64;

/// Bytes that a transfer between handles moves before other operations get a turn.
inline constexpr std::size_t splice_bytes_per_turn_max = 1024 * 1024;

/// The buffer through which bytes are copied where they cannot be moved by reference and the caller
/// passes none; it is on the stack.
inline constexpr std::size_t splice_stack_buffer_bytes = 64U << 10;

/// Connections that may wait to be accepted, unless a listener sets another number; the kernel's
/// own limit is net.core.somaxconn, 4096.
inline constexpr int listen_backlog = 4096;

/// Operations that complete in one pass, from which on it is cheaper to submit together the
/// operations that their receivers start on sockets than to try each by its own system call
/// (io_uring).
inline constexpr int batching_completions_min = 4;

/// Addresses of one name that are kept, and so tried by connect_by_name; a name server may send any
/// number.
inline constexpr std::size_t addresses_per_name_max = 64;

/// Different errors that are kept for operations on handles that cannot be
/// attached to a multiplexer.
inline constexpr std::size_t refusals_max = 32;

/// Attached handles for which memory is allocated at a time.
inline constexpr std::size_t registrations_per_chunk = 64;

/// The longest path, including its terminating zero (PATH_MAX), and the longest name of one entry
/// (NAME_MAX).
inline constexpr std::size_t path_bytes_max = 4096;
inline constexpr std::size_t name_bytes_max = 255;

/// Attempts at a confined open before its error is returned. The kernel refuses it with EAGAIN when
/// a concurrent rename made its check of `..` inconclusive.
inline constexpr unsigned confined_open_attempts_max = 64;

/// How often the present name of an open object is looked up again if it was renamed during the
/// lookup.
inline constexpr unsigned locate_attempts_max = 16;

/// Random names that are tried for a temporary file; one is almost always enough.
inline constexpr unsigned temporary_name_attempts_max = 16;

/// The smallest storage `enumerate` can work with: one directory record with the longest name.
inline constexpr std::size_t enumerate_storage_bytes_min = 280;

/// Bytes that one step of a copy moves: how far `clone_extents_to` continues after it was told to
/// stop.
inline constexpr std::size_t clone_step_bytes_max = 16U << 20;

/// The buffer for a copy through user memory when the caller passes none; it is on the stack.
inline constexpr std::size_t clone_stack_buffer_bytes = 64U << 10;

/// Connections that died before they were accepted, which one call skips. A listener with more of
/// them is served again in the next turn.
inline constexpr unsigned dead_connections_per_accept_max = 64;

/// How often requests are taken back from the kernel before a fork, a millisecond apart. The kernel
/// releases the buffers of zero-copy sends only when the peer has acknowledged them.
inline constexpr unsigned fork_rounds_max = 1000;

/// Pauses between two attempts of a timed lock, for which the kernel has no timed wait, and of a
/// datagram to a Unix socket whose queue is full.
inline constexpr std::chrono::nanoseconds lock_pause_min = std::chrono::microseconds(50);
inline constexpr std::chrono::nanoseconds lock_pause_max = std::chrono::milliseconds(5);

}  // namespace sluice::io::limits
