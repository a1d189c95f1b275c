#include "sluice/discovery/network/interface_list.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "sluice/base/ensure.hpp"
#include "sluice/discovery/limits.hpp"

namespace sluice::discovery {

namespace {

constexpr unsigned mapped_prefix_bits = 96;

[[nodiscard]] ip_bytes mapped(const in_addr& address) noexcept {
    ip_bytes bytes{};
    bytes[10] = bytes[11] = std::byte{0xff};
    std::memcpy(&bytes[12], &address, sizeof address);
    return bytes;
}

[[nodiscard]] unsigned ones_in(std::span<const std::byte> mask) noexcept {
    unsigned count = 0;
    for (const std::byte each : mask)
        count += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(each)));
    return count;
}

void add_address(const ifaddrs& one, interface_facts& to) {
    if (one.ifa_addr == nullptr) return;
    link_address found;
    if (one.ifa_addr->sa_family == AF_INET) {
        found.address = mapped(reinterpret_cast<const sockaddr_in&>(*one.ifa_addr).sin_addr);
        if (one.ifa_netmask != nullptr) {
            const auto& mask = reinterpret_cast<const sockaddr_in&>(*one.ifa_netmask).sin_addr;
            found.prefix_bits = mapped_prefix_bits + ones_in(std::as_bytes(std::span(&mask, 1)));
        }
    } else if (one.ifa_addr->sa_family == AF_INET6) {
        std::memcpy(&found.address, &reinterpret_cast<const sockaddr_in6&>(*one.ifa_addr).sin6_addr, 16);
        if (one.ifa_netmask != nullptr) {
            const auto& mask = reinterpret_cast<const sockaddr_in6&>(*one.ifa_netmask).sin6_addr;
            found.prefix_bits = ones_in(std::as_bytes(std::span(&mask, 1)));
        }
    } else {
        return;
    }
    ENSURE(found.prefix_bits <= 128);
    to.addresses.push_back(found);
}

// A listener at any_v6 also accepts IPv4 connections.
[[nodiscard]] bool is_reached_at(const ip_bytes& address, const io::socket_address& listener) noexcept {
    const std::uint16_t port = listener.port();
    if (listener == io::socket_address::any_v6(port)) return true;
    if (listener == io::socket_address::any_v4(port)) return is_v4(address);
    return listener.ip_bytes() == address;
}

[[nodiscard]] bool is_private_network(const interface_facts& one) noexcept {
    const auto is_only_of_link = [](const link_address& each) {
        return not is_v4(each.address) and is_link_local(each.address);
    };
    if (std::ranges::any_of(one.addresses, [](const link_address& each) {
            return is_v4(each.address) and not is_private(each.address);
        }))
        return false;
    return std::ranges::all_of(one.addresses, is_only_of_link) or
           std::ranges::any_of(one.addresses, [&](const link_address& each) {
               return is_private(each.address) and not is_only_of_link(each);
           });
}

}  // namespace

std::vector<interface_facts> read_interfaces() {
    constexpr unsigned wanted = IFF_UP | IFF_RUNNING | IFF_MULTICAST;
    constexpr unsigned excluded = IFF_LOOPBACK | IFF_POINTOPOINT;
    std::vector<interface_facts> found;
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return found;
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(first, &freeifaddrs);
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        auto known = std::ranges::find(found, one->ifa_name, &interface_facts::name);
        if (known == found.end()) {
            const bool is_usable = (one->ifa_flags & (wanted | excluded)) == wanted;
            found.push_back(
                {.number = if_nametoindex(one->ifa_name), .name = one->ifa_name, .is_usable = is_usable});
            known = found.end() - 1;
        }
        add_address(*one, *known);
    }
    return found;
}

chosen_links choose_links(std::span<const interface_facts> interfaces,
                          std::span<const io::socket_address> listening) {
    chosen_links chosen;
    for (const interface_facts& one : interfaces) {
        for (const link_address& each : one.addresses)
            chosen.own_addresses.push_back(each.address);
        if (not one.is_usable or one.number == 0 or not is_private_network(one)) continue;
        std::vector<link_address> advertised;
        for (const link_address& each : one.addresses) {
            const bool is_reached = std::ranges::any_of(
                listening, [&](const io::socket_address& at) { return is_reached_at(each.address, at); });
            if (is_reached and is_private(each.address) and
                advertised.size() < limits::addresses_per_link_max)
                advertised.push_back(each);
        }
        if (advertised.empty()) continue;
        chosen.names.push_back(one.name);
        for (const bool is_v6 : {false, true}) {
            const auto has_family = [is_v6](const link_address& each) {
                return is_v4(each.address) != is_v6;
            };
            if (std::ranges::any_of(one.addresses, has_family) and chosen.links.size() < limits::links_max)
                chosen.links.push_back({.key = {.interface = one.number, .is_v6 = is_v6},
                                        .advertised = advertised,
                                        .all = one.addresses});
        }
    }
    return chosen;
}

bool is_loopback(const io::socket_address& listening) noexcept {
    const ip_bytes address = listening.ip_bytes();
    if (is_v4(address)) return address[12] == std::byte{127};
    return listening == io::socket_address::loopback_v6(listening.port());
}

std::uint16_t advertised_port(std::span<const io::socket_address> listening) noexcept {
    constexpr std::uint16_t usual_port = 445;
    std::uint16_t first = 0;
    for (const io::socket_address& each : listening) {
        if (is_loopback(each)) continue;
        if (each.port() == usual_port) return usual_port;
        if (first == 0) first = each.port();
    }
    return first;
}

}  // namespace sluice::discovery
