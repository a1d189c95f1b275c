#pragma once

#include <chrono>
#include <cstddef>

namespace sluice::io {

/// The times after which the kernel ends a TCP connection whose peer has vanished. 0:
/// the system's default.
struct keep_alive_times {
    std::chrono::seconds idle{};      ///< without traffic, before the first probe (TCP_KEEPIDLE)
    std::chrono::seconds interval{};  ///< between probes (TCP_KEEPINTVL)
    unsigned probes = 0;              ///< unanswered ones that end the connection (TCP_KEEPCNT)
    /// For how long sent data may stay unacknowledged, or the peer's window
    /// closed (TCP_USER_TIMEOUT).
    std::chrono::milliseconds user_timeout{};
};

/// The options of a new socket. Every socket is closed on exec.
struct socket_options {
    /// TCP: send at once instead of waiting for more, as servers of requests need.
    bool no_delay = true;
    bool keep_alive = false;
    keep_alive_times keep_alive_after{};   ///< TCP only; with keep_alive
    bool reuse_port = false;               ///< several sockets share the port, and
                                           ///< the kernel distributes
    bool v6_only = false;                  ///< an IPv6 socket does not accept IPv4 as well
    std::size_t send_buffer_bytes = 0;     ///< 0: the system's choice, which it
                                           ///< adapts; it doubles others
    std::size_t receive_buffer_bytes = 0;  ///< likewise
};

}  // namespace sluice::io
