#pragma once

#include <array>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/call/socket_address.hpp"

namespace sluice::smb::server {

/// The bytes of an IP address: IPv4 addresses as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2).
using ip_bytes = std::array<std::byte, 16>;

/// A network of IP addresses, or one address. Thread safety: a value.
class ip_network {
public:
    /// Parses "10.0.0.5", "10.0.0.0/8", "2001:db8::/32", or an IPv4-mapped IPv6 address, which
    /// means the IPv4 address. Errors: the rule that the text violates; also for a host name, a
    /// scope ("%eth0"), and bits after the prefix.
    [[nodiscard]] static std::expected<ip_network, std::string> parse(std::string_view text);

    [[nodiscard]] bool contains(const ip_bytes& address) const noexcept;

    [[nodiscard]] friend bool operator==(const ip_network&, const ip_network&) noexcept = default;

private:
    ip_bytes bytes_{};
    unsigned bits_ = 128;  // the length of the prefix, in the form of ip_bytes
};

/// The addresses that clients may come from. A denied address is denied, also if it is allowed; if
/// any are allowed, all others are denied. Thread safety: a value, which readers share.
struct host_rules {
    std::vector<ip_network> allowed;
    std::vector<ip_network> denied;

    /// Complexity: linear in the networks. Allocates: nothing.
    [[nodiscard]] bool permit(const ip_bytes& address) const noexcept;
    [[nodiscard]] bool are_given() const noexcept { return not allowed.empty() or not denied.empty(); }

    [[nodiscard]] friend bool operator==(const host_rules&, const host_rules&) noexcept = default;
};

}  // namespace sluice::smb::server
