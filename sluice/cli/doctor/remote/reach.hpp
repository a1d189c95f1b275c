#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "sluice/cli/doctor/finding.hpp"
#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::cli::doctor {

/// The kind of an answer to a TCP connect.
enum class reach : std::uint8_t {
    open,
    closed,         ///< a host answered that no program listens
    filtered,       ///< no answer at all: a firewall drops packets, or the host is off
    no_route,       ///< a router, or this host, knows no way
    local_refusal,  ///< this host does not permit the connection
    other,
};

/// Returns the kind of an errno value of connect(2); 0 is success.
[[nodiscard]] reach reach_of(int code) noexcept;

/// One attempt to connect.
struct connect_attempt {
    std::string address;  ///< with the port
    int code = 0;         ///< the errno value; 0: connected
    std::chrono::milliseconds took{0};
};

/// Connects; on success `into` has the socket. Blocks: for at most `within`.
[[nodiscard]] connect_attempt try_connect(const io::socket_address& address, std::chrono::milliseconds within,
                                          io::socket_handle& into);

/// Returns the findings about all attempts for a host: a problem if none succeeded, a warning if a
/// few did, because clients may wait for the others. Pure function.
[[nodiscard]] std::vector<finding> judge_attempts(std::string_view host, std::uint16_t port,
                                                  std::span<const connect_attempt> attempts);

/// The kernel's figures of a connection.
struct path_figures {
    unsigned round_trip_us = 0;  ///< 0: unknown; so for the rest
    unsigned deviation_us = 0;
    unsigned retransmissions = 0;
    unsigned mtu = 0;
    std::string congestion_control;
};

/// Returns the figures of a connected TCP socket. Errors: unknown figures stay 0.
[[nodiscard]] path_figures figures_of(const io::socket_handle& connected);

/// Returns the findings about the path to a server. Pure function.
[[nodiscard]] std::vector<finding> judge_path(const path_figures& seen);

}  // namespace sluice::cli::doctor
