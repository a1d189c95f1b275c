#pragma once

#include <cstdint>
#include <thread>

namespace sluice::bench {

/// The connecting side: a thread on the last CPU that opens TCP connections over loopback, `burst`
/// of them at a time, and continues once the server has closed them all.
///
/// The server closes with a reset, an option that accepted connections inherit from the listener.
/// So none of the thousands of connections stays in TIME_WAIT.
class accept_load {
public:
    /// Makes the largest multiple of `burst` up to `connections` connections.
    accept_load(unsigned burst, std::uint64_t connections);
    accept_load(const accept_load&) = delete;
    accept_load& operator=(const accept_load&) = delete;
    ~accept_load();

    /// Returns a non-blocking listener; the caller closes it.
    [[nodiscard]] int release_listener() noexcept;
    [[nodiscard]] std::uint64_t connections() const noexcept { return connections_; }

    /// Starts to connect.
    void begin();

private:
    void connect_all() const;

    unsigned burst_;
    std::uint64_t connections_;
    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::thread client_;
};

}  // namespace sluice::bench
