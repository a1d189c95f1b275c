#pragma once

#include <span>
#include <string>
#include <vector>

#include "sluice/discovery/network/link.hpp"

namespace sluice::discovery {

/// An interface of this host.
struct interface_facts {
    unsigned number = 0;
    std::string name{};
    bool is_usable = false;  // up, with a link, multicast; neither loopback nor point-to-point
    std::vector<link_address> addresses{};
};

/// The links to advertise on, and all addresses of this host.
struct chosen_links {
    std::vector<link> links;
    std::vector<ip_bytes> own_addresses;
    std::vector<std::string> names;  // interfaces of the links, each once
};

/// Returns the interfaces of this host. Empty on failure. Allocates: yes. Blocks: briefly, for the
/// kernel's tables.
[[nodiscard]] std::vector<interface_facts> read_interfaces();

/// Returns the links of private networks on which the server can be reached at one of its listening
/// addresses. An interface is on a private network if none of its IPv4 addresses is public, and it
/// has a private address other than an IPv6 link-local one, or no address but those. Only private
/// addresses are advertised. Allocates: yes.
[[nodiscard]] chosen_links choose_links(std::span<const interface_facts> interfaces,
                                        std::span<const io::socket_address> listening);

/// Returns whether a listener is for this host only, so that there is nothing to advertise.
[[nodiscard]] bool is_loopback(const io::socket_address& listening) noexcept;

/// Returns the port to advertise: that of a listener that is not for this host only, 445 if one of
/// them has it. 0 if there is none.
[[nodiscard]] std::uint16_t advertised_port(std::span<const io::socket_address> listening) noexcept;

}  // namespace sluice::discovery
