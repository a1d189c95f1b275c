#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <string>

#include "sluice/io/call/socket_address.hpp"

namespace sluice::smb::server {

/// The address that quotas and delays of clients without a user apply to: an IPv4 address, or the
/// first 64 bits of an IPv6 address, because a single host can use all addresses of such a
/// network. Link-local addresses count as a whole: every host of a link shares their first 64
/// bits. Thread safety: a value.
/// Allocates: only text().
class client_address {
public:
    client_address() noexcept = default;
    explicit client_address(const io::socket_address& peer) noexcept : client_address(peer, 64) {}
    /// Uses the first `bits` of an IPv6 address instead: a multiple of 16.
    client_address(const io::socket_address& peer, unsigned bits) noexcept;

    /// "10.0.0.1", "2001:0db8:0000:0001::/64"; "-" for a peer without an IP address.
    [[nodiscard]] std::string text() const;

    [[nodiscard]] friend auto operator<=>(const client_address&, const client_address&) noexcept = default;

private:
    std::array<std::byte, 16> bytes_{};
    unsigned bits_ = 128;
};

}  // namespace sluice::smb::server
