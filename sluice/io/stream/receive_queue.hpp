#pragma once

#include <cstddef>

#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::io {

/// Throws away up to `bytes_max` bytes that the kernel has received for a TCP socket, without copying them:
/// for whoever measures the sender. Returns how many; none if nothing is there now, the stream has ended, or
/// the socket is of another kind, and then a read tells which, and does the same.
/// Allocates: nothing. Blocks: no. Source: tcp(7), MSG_TRUNC.
[[nodiscard]] std::size_t discard_received(const socket_handle& socket, std::size_t bytes_max) noexcept;

}  // namespace sluice::io
