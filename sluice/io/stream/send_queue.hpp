#pragma once

#include <cstddef>

#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::io {

/// Bytes the kernel has taken for the peer of a stream socket and does not know to have arrived: for TCP,
/// sent or not, what is not acknowledged; for a Unix socket about what the peer has not read, with the
/// kernel's own overhead. How one tells a peer that is slow, or gone without a word, from one that listens.
/// Errors: EINVAL, ENOTSUP for other sockets. Allocates: nothing. Source: tcp(7) and unix(7), SIOCOUTQ.
[[nodiscard]] result<std::size_t> undelivered_bytes(const socket_handle& socket) noexcept;

}  // namespace sluice::io
