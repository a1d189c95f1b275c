#pragma once

#include <cstddef>
#include <vector>

#include "bench/harness/benchmark.hpp"

namespace sluice::bench {

/// The pending operations: reads on silent datagram sockets, and one on a socket that receives a
/// byte each round. A descriptor for each read, up to `descriptors_max`, which a usual limit of
/// open files allows; beyond that several reads share a socket.
class pending_reads {
public:
    static constexpr std::size_t descriptors_max = 10'000;

    explicit pending_reads(std::size_t count);
    pending_reads(const pending_reads&) = delete;
    pending_reads& operator=(const pending_reads&) = delete;
    ~pending_reads();

    /// Returns the silent sockets, and the one that receives bytes; the caller closes them.
    [[nodiscard]] const std::vector<int>& quiet() const noexcept { return quiet_; }
    [[nodiscard]] std::size_t reads_on_each() const noexcept { return reads_on_each_; }
    [[nodiscard]] int active() const noexcept { return active_; }
    /// Makes the active socket's read ready.
    void send_byte() const noexcept;

private:
    std::vector<int> quiet_;
    std::size_t reads_on_each_ = 1;
    int active_ = -1;
    int sender_ = -1;
};

namespace peers {

/// The bare system calls of such a round: send and recv, and, with `asks`, an epoll_wait between
/// them that watches all sockets.
void pending_by_hand(run& repeat, std::size_t pending, bool asks);
void pending_asio(run& repeat, std::size_t pending, bool sleeps);

}  // namespace peers
}  // namespace sluice::bench
