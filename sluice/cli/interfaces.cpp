#include "sluice/cli/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <fstream>
#include <memory>

namespace sluice::cli {

namespace {

constexpr std::uint64_t bits_per_megabit = 1'000'000;
constexpr std::uint64_t gigabit = 1'000 * bits_per_megabit;

struct own_address {
    std::string interface;
    std::string text;  // of the address
    bool is_v6 = false;
    bool is_loopback = false;
};

// Of an interface's address what others can use; an address of the link means nothing to whoever is not on
// it.
[[nodiscard]] std::string text_of(const sockaddr& address) {
    char text[INET6_ADDRSTRLEN] = {};
    const void* bytes = nullptr;
    if (address.sa_family == AF_INET)
        bytes = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    else if (address.sa_family == AF_INET6)
        bytes = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (bytes == nullptr) return {};
    if (address.sa_family == AF_INET6 and IN6_IS_ADDR_LINKLOCAL(static_cast<const in6_addr*>(bytes)))
        return {};
    return inet_ntop(address.sa_family, bytes, text, sizeof text) != nullptr ? std::string(text)
                                                                             : std::string();
}

[[nodiscard]] std::vector<own_address> addresses_that_are_up() {
    std::vector<own_address> found;
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return found;
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(first, &freeifaddrs);
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr or (one->ifa_flags & IFF_UP) == 0) continue;
        std::string text = text_of(*one->ifa_addr);
        if (not text.empty())
            found.push_back({.interface = one->ifa_name,
                             .text = std::move(text),
                             .is_v6 = one->ifa_addr->sa_family == AF_INET6,
                             .is_loopback = (one->ifa_flags & IFF_LOOPBACK) != 0});
    }
    return found;
}

// A listener at all addresses of version 6 has those of version 4, too.
[[nodiscard]] bool is_reached_at(const own_address& own, const io::socket_address& listener) noexcept {
    const std::uint16_t port = listener.port();
    if (listener == io::socket_address::any_v6(port)) return not own.is_loopback;
    if (listener == io::socket_address::any_v4(port)) return not own.is_loopback and not own.is_v6;
    const auto exactly = io::socket_address::ip(own.text, port);
    return exactly and * exactly == listener;
}

[[nodiscard]] std::uint64_t speed_of(const std::string& interface) {
    std::ifstream file("/sys/class/net/" + interface + "/speed");
    std::int64_t megabits = 0;
    if (not(file >> megabits) or megabits <= 0) return gigabit;  // -1: the kernel does not know
    return static_cast<std::uint64_t>(megabits) * bits_per_megabit;
}

}  // namespace

std::vector<std::string> own_addresses() {
    std::vector<std::string> reachable;
    for (own_address& one : addresses_that_are_up())
        if (not one.is_v6 and not one.is_loopback) reachable.push_back(std::move(one.text));
    reachable.emplace_back("127.0.0.1");
    return reachable;
}

std::vector<smb::server::network_interface> own_interfaces(std::span<const io::socket_address> listening) {
    std::vector<smb::server::network_interface> interfaces;
    for (const own_address& one : addresses_that_are_up()) {
        const auto reaches = [&one](const io::socket_address& at) { return is_reached_at(one, at); };
        if (std::ranges::none_of(listening, reaches)) continue;
        const auto address = io::socket_address::ip(one.text, 0);
        const unsigned index = if_nametoindex(one.interface.c_str());
        if (not address or index == 0) continue;  // it has gone
        interfaces.push_back(
            {.address = *address, .index = index, .bits_per_second = speed_of(one.interface)});
    }
    return interfaces;
}

}  // namespace sluice::cli
