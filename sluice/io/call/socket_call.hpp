#pragma once

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"
#include "sluice/io/call/direction.hpp"
#include "sluice/io/call/handle.hpp"
#include "sluice/io/call/socket_address.hpp"

// The system calls for connections, with their special cases, in one place: the blocking calls and
// the multiplexers differ only in which of them waits. Internal to io.

namespace sluice::io {

/// The argument of an `accept_ahead`, and the peer of the connection that it got.
struct accept_request {
    socket_address peer;      // the outcome, if `knows_peer`
    bool knows_peer = false;  // otherwise query the connection itself
    bool stops = false;       // accept no more; then ECANCELED

    // The kernel stores the peer of each connection here that it accepts by itself.
    socket_address newest;
    std::uint32_t newest_bytes = 0;
};

/// Returns whether an error of accept belongs to a connection that died before it was accepted, not
/// to the listener.
[[nodiscard]] bool is_of_dead_connection(int code) noexcept;

/// Takes a connection from a listener's queue without waiting. Returns its descriptor, or -1 with
/// the cause in errno: EAGAIN if there is none. Connections that died in the queue are skipped.
[[nodiscard]] int accept_call(int listener, socket_address* peer) noexcept;

/// Begins to connect, without waiting. Returns 0 if it is connected, EINPROGRESS, or the error.
[[nodiscard]] int begin_connect(int descriptor, const socket_address& peer) noexcept;

/// Returns the outcome of a pending connection: 0 if it is connected, EINPROGRESS while it is
/// pending, or the error.
[[nodiscard]] int connect_outcome(int descriptor) noexcept;

/// Connects, and waits until it is connected. Returns 0 or the error; ETIMEDOUT if the deadline
/// passed. Blocks: until the deadline.
[[nodiscard]] int connect_blocking(const native_handle& native, const socket_address& peer,
                                   deadline within) noexcept;

/// Returns an error that names the address.
[[nodiscard]] error address_error(int code, const char* operation, const socket_address& address) noexcept;

/// Returns the address at one end. Errors: ENOTCONN.
[[nodiscard]] result<socket_address> local_address_of(const native_handle& native) noexcept;
[[nodiscard]] result<socket_address> peer_address_of(const native_handle& native) noexcept;

/// Sets an option that is a number. Errors: those of setsockopt(2).
[[nodiscard]] result<void> set_socket_option(int descriptor, int level, int option, int value,
                                             const char* operation) noexcept;

/// Returns the description of a connected or connectable socket in blocking mode.
[[nodiscard]] constexpr native_handle describe_socket(int descriptor, bool is_stream) noexcept {
    return {.descriptor = descriptor,
            .kind = handle_kind::socket,
            .readable = true,
            .writable = true,
            .stream = is_stream};
}

/// Sets O_NONBLOCK on the description, unless `native` has it. Errors: EBADF.
[[nodiscard]] result<void> make_nonblocking(native_handle& native) noexcept;

struct socket_options;

/// Applies the options of connected sockets; also to a listener, whose connections inherit them.
[[nodiscard]] result<void> apply_options(int descriptor, const socket_options& options) noexcept;

}  // namespace sluice::io
