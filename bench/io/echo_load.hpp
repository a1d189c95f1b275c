#pragma once

#include <cstdint>
#include <thread>
#include <vector>

namespace sluice::bench {

/// Two ends of a TCP connection over loopback, with TCP_NODELAY and cubic.
struct tcp_pair {
    int server;
    int client;
};
[[nodiscard]] tcp_pair connected_over_loopback();

/// The other side of an echo server: TCP connections over loopback, each with one byte in flight,
/// and a thread on the last CPU that sends a byte as soon as its echo has arrived.
///
/// After `echoes` of them, equally many on each connection (rounded down), it shuts its sides down,
/// so that every server session ends by reading the end of file. The server's ends are blocking;
/// the caller owns them.
class echo_load {
public:
    echo_load(unsigned connections, std::uint64_t echoes);
    echo_load(const echo_load&) = delete;
    echo_load& operator=(const echo_load&) = delete;
    ~echo_load();

    /// Returns the server's ends, in order; the caller closes them.
    [[nodiscard]] const std::vector<int>& server_ends() const noexcept { return server_ends_; }

    /// Starts to send.
    void begin();

private:
    void converse() const;
    void converse_alone() const;

    std::uint64_t echoes_;
    std::vector<int> server_ends_;
    std::vector<int> client_ends_;
    std::thread client_;
};

}  // namespace sluice::bench
