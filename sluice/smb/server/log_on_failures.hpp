#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "sluice/base/clock.hpp"

namespace sluice::smb::server {

/// How long an address that keeps failing to log on must wait for its answer: nothing at first, then twice as
/// long each time, up to limits::log_on_delay_max. A success, or ten quiet minutes, forgives.
///
/// Remembers a bounded number of addresses; the one quiet for longest is forgotten first.
/// Thread safety: under the server's latch.
class log_on_failures {
public:
    explicit log_on_failures(clock_source& clock) noexcept : clock_(clock) {}

    /// Notes a failure and says how late to answer it.
    [[nodiscard]] std::chrono::milliseconds failed(const std::string& address);
    void succeeded(const std::string& address) noexcept { entries_.erase(address); }

    static constexpr std::size_t addresses_max = 4096;
    static constexpr std::chrono::minutes forgiven_after{10};

private:
    struct entry {
        unsigned failures = 0;
        clock_source::steady_time latest{};
    };
    void make_room();

    clock_source& clock_;
    std::unordered_map<std::string, entry> entries_;
};

}  // namespace sluice::smb::server
