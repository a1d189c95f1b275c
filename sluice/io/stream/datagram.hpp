#pragma once

#include <cstddef>

#include "sluice/io/call/request.hpp"
#include "sluice/io/call/socket_address.hpp"

namespace sluice::io {

/// A received datagram. `buffers` are those of the request, shortened to the bytes that arrived.
template <read_buffers Buffers>
struct received_datagram {
    Buffers buffers{};
    /// The sender; its family is unspecified for a Unix socket without a name.
    socket_address peer;
    std::size_t message_bytes = 0;  ///< length of the datagram as sent
    /// True if no bytes were received because the peer of a seqpacket socket has ended the
    /// connection, or this side has shut down receiving. False for an empty datagram. The kernel
    /// reports both as zero bytes; see socket_handle::recvfrom for the one case in which they
    /// cannot be distinguished.
    bool is_end = false;

    /// Returns whether the datagram was longer than the buffers. The kernel has discarded the rest.
    [[nodiscard]] constexpr bool is_truncated() const noexcept {
        std::size_t kept = 0;
        if constexpr (requires { buffers[0].size(); }) {
            for (const auto& piece : buffers)
                kept += piece.size();
        } else {
            kept = buffers.size();
        }
        return message_bytes > kept;
    }
};

}  // namespace sluice::io
