#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

namespace sluice::bench {

/// A TCP connection over a network device that takes segments without a copy and drops them, like a
/// network card after sending. A thread on the last CPU generates the acknowledgements.
///
/// The connection is created by TCP_REPAIR, without a peer, over an `ifb`; the acknowledgements
/// come through a `tun`; all of that in a network namespace of this process. Thread safety: one
/// thread sends.
class silent_connection {
public:
    /// Returns false without the rights (root), the devices or `ip`.
    [[nodiscard]] static bool is_possible();

    silent_connection();
    silent_connection(const silent_connection&) = delete;
    silent_connection& operator=(const silent_connection&) = delete;
    ~silent_connection();

    [[nodiscard]] int socket() const noexcept { return socket_; }
    /// Records that the socket has accepted bytes: only those can be acknowledged.
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
