#pragma once

#include <cstddef>

#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::io {

/// Discards up to `bytes_max` bytes that the kernel has received for a TCP socket, without copying
/// them: for programs that measure the sender. Returns the number of discarded bytes. It is 0 if no
/// bytes are available, the stream has ended, or the socket is not a TCP socket. A read then
/// distinguishes these cases. Allocates: nothing. Blocks: no. Source: tcp(7), MSG_TRUNC.
[[nodiscard]] std::size_t discard_received(const socket_handle& socket, std::size_t bytes_max) noexcept;

}  // namespace sluice::io
