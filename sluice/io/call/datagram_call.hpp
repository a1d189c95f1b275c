#pragma once

#include <cstddef>
#include <span>

#include "sluice/base/deadline.hpp"
#include "sluice/base/result.hpp"
#include "sluice/io/call/direction.hpp"
#include "sluice/io/call/handle.hpp"
#include "sluice/io/call/request.hpp"
#include "sluice/io/call/socket_address.hpp"

// The system calls for datagrams. Internal to io.

namespace sluice::io {

/// The address of a `receive_from` (an outcome) or a `send_to` (the destination).
struct datagram_request {
    socket_address peer;            // unspecified, to send: the connected peer
    std::size_t message_bytes = 0;  // an outcome of `receive_from`
    bool is_end = false;            // an outcome of `receive_from`
};

/// Carries out a `receive_from` or `send_to` without waiting. Returns the bytes moved, or -1 with
/// the cause in errno: EAGAIN if it would have to wait; EOPNOTSUPP if it is not a socket with
/// datagrams; EMSGSIZE for more than limits::pieces_per_call_max segments.
[[nodiscard]] std::ptrdiff_t datagram_call(const native_handle& native, direction which,
                                           std::span<const buffer> pieces,
                                           datagram_request& request) noexcept;

/// Returns whether a send that would block waits for space at the receiver, a Unix socket: the
/// sender's descriptor is always writable, so there is nothing to poll for.
[[nodiscard]] bool waits_for_receiver(const native_handle& native, const datagram_request& request) noexcept;

/// The same as datagram_call, but waits. Errors: ETIMEDOUT, and those of datagram_call.
/// Blocks: until the deadline.
[[nodiscard]] result<std::size_t> datagram_blocking(const native_handle& native, direction which,
                                                    std::span<const buffer> pieces, datagram_request& request,
                                                    deadline within) noexcept;

/// Returns an error that names the destination, for `send_to`, or the descriptor, for
/// `receive_from`.
[[nodiscard]] error datagram_error(int code, const native_handle& native, direction which,
                                   const datagram_request& request) noexcept;

}  // namespace sluice::io
