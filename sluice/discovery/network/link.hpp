#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/io/call/socket_address.hpp"

namespace sluice::discovery {

/// The bytes of an IPv6 address, or of an IPv4 address mapped to IPv6.
using ip_bytes = std::array<std::byte, 16>;

/// An interface and an address family: the scope of one mDNS responder.
struct link_key {
    unsigned interface = 0;  // its number
    bool is_v6 = false;

    [[nodiscard]] friend auto operator<=>(const link_key&, const link_key&) noexcept = default;
};

struct link_address {
    ip_bytes address{};
    unsigned prefix_bits = 128;  // of 128, also for a mapped IPv4 address

    [[nodiscard]] friend bool operator==(const link_address&, const link_address&) noexcept = default;
};

[[nodiscard]] bool is_v4(const ip_bytes& address) noexcept;

/// A link that the server is advertised on.
struct link {
    link_key key{};
    std::vector<link_address> advertised{};  // of both families: answers to A and AAAA
    std::vector<link_address> all{};         // all addresses of the interface

    [[nodiscard]] friend bool operator==(const link&, const link&) noexcept = default;
};

/// Returns whether an address belongs to a network of the interface, so that its packets have not
/// passed a router: link-local, or with the prefix of one of the interface's addresses.
[[nodiscard]] bool is_on_link(const link& where, const ip_bytes& address) noexcept;

/// Returns whether an address is for private networks: RFC 1918, the shared addresses of RFC 6598,
/// link-local of both families, and unique local (RFC 4193).
[[nodiscard]] bool is_private(const ip_bytes& address) noexcept;
[[nodiscard]] bool is_link_local(const ip_bytes& address) noexcept;

}  // namespace sluice::discovery
