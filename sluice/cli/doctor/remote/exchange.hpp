#pragma once

#include <chrono>
#include <span>

#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/smb/client/negotiate_probe.hpp"

namespace sluice::cli::doctor {

/// How a server reacted to one request of a fresh connection.
enum class reaction : std::uint8_t {
    answered,     ///< `answer` is complete
    silent,       ///< no complete answer before the deadline
    closed,       ///< it closed or reset the connection before an answer was complete
    unreachable,  ///< no connection: `code`
};

struct probe_outcome {
    reaction how = reaction::unreachable;
    int code = 0;
    smb::client::probe_answer answer{};
    std::size_t received_bytes = 0;
    std::chrono::milliseconds took{0};
};

/// Sends `request` over a connected socket and classifies the answer. The deadline is absolute, so
/// that a server that sends one byte at a time cannot extend it; at most 64 KiB are received.
/// Blocks: until then. Allocates: the received bytes.
[[nodiscard]] probe_outcome exchange_over(io::socket_handle& connected, std::span<const std::byte> request,
                                          std::chrono::steady_clock::time_point until);

/// Connects first. Blocks: until the deadline.
[[nodiscard]] probe_outcome exchange_with(const io::socket_address& address,
                                          std::span<const std::byte> request,
                                          std::chrono::steady_clock::time_point until);

}  // namespace sluice::cli::doctor
