#pragma once

#include <span>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/discovery/network/link.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::discovery {

/// One way to advertise the server. All calls come from the thread of discovery, and none blocks.
class discovery_protocol {
public:
    using time = clock_source::steady_time;

    virtual ~discovery_protocol() = default;
    discovery_protocol(const discovery_protocol&) = delete;
    discovery_protocol& operator=(const discovery_protocol&) = delete;

    /// Returns the descriptors that are readable when receive() has something to do.
    [[nodiscard]] virtual std::vector<int> descriptors() const = 0;
    /// Starts coroutines on the multiplexer of the thread, which outlives the protocol.
    virtual void start(io::io_multiplexer&) {}
    virtual void set_links(std::span<const link> links, const std::vector<ip_bytes>& own_addresses,
                           time now) = 0;
    /// Processes the packets that have arrived, for each socket at most
    /// limits::datagrams_per_turn_max.
    virtual void receive(time now) = 0;
    [[nodiscard]] virtual time next_due() const noexcept = 0;
    virtual void advance(time now) = 0;
    /// Withdraws the server.
    virtual void stop() = 0;
    /// Waits, after stop(), until nothing of the protocol runs. Suspends.
    [[nodiscard]] virtual io::task<void> done() { co_return; }

protected:
    discovery_protocol() noexcept = default;
};

}  // namespace sluice::discovery
