#pragma once

#include <cstdint>
#include <thread>

namespace sluice::bench {

/// Who connects: a thread on the last processor that opens TCP connections over loopback, `burst` of them at
/// a time, and goes on once the server has closed them all.
///
/// The server closes by resetting, which accepted connections inherit from the listener: so none of the
/// thousands of connections lingers in TIME_WAIT.
class accept_load {
public:
    /// As many connections as a multiple of `burst` holds up to `connections`.
    accept_load(unsigned burst, std::uint64_t connections);
    accept_load(const accept_load&) = delete;
    accept_load& operator=(const accept_load&) = delete;
    ~accept_load();

    /// A non-blocking listener; the caller closes it.
    [[nodiscard]] int release_listener() noexcept;
    [[nodiscard]] std::uint64_t connections() const noexcept { return connections_; }

    /// Begins to connect.
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
