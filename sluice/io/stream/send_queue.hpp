#pragma once

#include <cstddef>

#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::io {

/// Returns the bytes that the kernel has accepted for the peer of a stream socket and does not know
/// to have arrived: for TCP, sent or not, the unacknowledged bytes; for a Unix socket about the
/// bytes that the peer has not read, with the kernel's own overhead. The value distinguishes a peer
/// that reads from one that is slow, or lost without a notification. Errors: EINVAL, ENOTSUP for
/// other sockets. Allocates: nothing. Source: tcp(7) and unix(7), SIOCOUTQ.
[[nodiscard]] result<std::size_t> undelivered_bytes(const socket_handle& socket) noexcept;

}  // namespace sluice::io
