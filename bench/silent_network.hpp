#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

namespace sluice::bench {

/// A TCP connection whose segments a network device takes without a copy and drops, as a network card does
/// once it has sent them, and whose acknowledgements a thread on the last processor invents.
///
/// The connection is made by TCP_REPAIR, without a peer, over an `ifb`; the acknowledgements come in by a
/// `tun`; all of that in a network namespace of this process. Thread safety: one thread sends.
class silent_connection {
public:
    /// Nothing without the rights (root), the devices or `ip`.
    [[nodiscard]] static bool is_possible();

    silent_connection();
    silent_connection(const silent_connection&) = delete;
    silent_connection& operator=(const silent_connection&) = delete;
    ~silent_connection();

    [[nodiscard]] int socket() const noexcept { return socket_; }
    /// To be told how much the socket has taken: only that can be acknowledged.
    void sent(std::uint64_t bytes) noexcept { sent_.fetch_add(bytes, std::memory_order_relaxed); }

private:
    void acknowledge() noexcept;

    int socket_ = -1;
    std::uint16_t port_ = 0;
    std::atomic<std::uint64_t> sent_{0};
    std::atomic<bool> is_over_{false};
    std::thread thread_;
};

}  // namespace sluice::bench
