#include "sluice/cli/serve/interfaces.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>

namespace sluice::cli {

namespace {

constexpr std::uint64_t bits_per_megabit = 1'000'000;
constexpr std::uint64_t gigabit = 1'000 * bits_per_megabit;

struct own_address {
    std::string interface;
    std::string text;  // the address
    bool is_v6 = false;
    bool is_loopback = false;
    bool is_of_link = false;
};

// Classifies the address, not its interface: a routable address may be assigned to lo.
void judge(const in_addr& address, own_address& own) noexcept {
    const std::uint32_t number = ntohl(address.s_addr);
    own.is_loopback = number >> 24 == 127;
    own.is_of_link = number >> 16 == 0xa9fe;  // 169.254.0.0/16
}

void judge(const in6_addr& address, own_address& own) noexcept {
    own.is_v6 = true;
    own.is_loopback = IN6_IS_ADDR_LOOPBACK(&address);
    own.is_of_link = IN6_IS_ADDR_LINKLOCAL(&address);
}

// Returns std::nullopt for an address of another family than IP.
[[nodiscard]] std::optional<own_address> own_address_of(const ifaddrs& one) {
    if (one.ifa_addr == nullptr) return std::nullopt;
    own_address own{.interface = one.ifa_name, .text = std::string(INET6_ADDRSTRLEN, '\0')};
    const void* bytes = nullptr;
    if (one.ifa_addr->sa_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(*one.ifa_addr).sin_addr;
        judge(v4, own);
        bytes = &v4;
    } else if (one.ifa_addr->sa_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(*one.ifa_addr).sin6_addr;
        judge(v6, own);
        bytes = &v6;
    }
    if (bytes == nullptr or
        inet_ntop(one.ifa_addr->sa_family, bytes, own.text.data(), INET6_ADDRSTRLEN) == nullptr)
        return std::nullopt;
    own.text.resize(own.text.find('\0'));
    return own;
}

// An interface without a link is unreachable, such as a bridge of containers of which none runs.
[[nodiscard]] std::vector<own_address> addresses_that_are_up() {
    constexpr unsigned wanted = IFF_UP | IFF_RUNNING;
    std::vector<own_address> found;
    ifaddrs* first = nullptr;
    if (getifaddrs(&first) != 0) return found;
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(first, &freeifaddrs);
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next)
        if ((one->ifa_flags & wanted) == wanted)
            if (auto own = own_address_of(*one)) found.push_back(*std::move(own));
    return found;
}

[[nodiscard]] bool is_everywhere(const io::socket_address& listener) noexcept {
    const std::uint16_t port = listener.port();
    return listener == io::socket_address::any_v6(port) or listener == io::socket_address::any_v4(port);
}

// Returns whether other hosts reach the listener at this address. A listener at any_v6 also accepts
// IPv4 connections.
[[nodiscard]] bool is_reached_at(const own_address& own, const io::socket_address& listener) noexcept {
    // The wire format has no field for the scope (interface number) that a link-local address
    // needs.
    if (own.is_v6 and own.is_of_link) return false;
    const std::uint16_t port = listener.port();
    const bool is_for_others = not own.is_loopback and not own.is_of_link;
    if (listener == io::socket_address::any_v6(port)) return is_for_others;
    if (listener == io::socket_address::any_v4(port)) return is_for_others and not own.is_v6;
    const auto exactly = io::socket_address::ip(own.text, port);
    return exactly and * exactly == listener;
}

[[nodiscard]] std::uint64_t speed_of(const std::string& interface) {
    std::ifstream file("/sys/class/net/" + interface + "/speed");
    std::int64_t megabits = 0;
    if (not(file >> megabits) or megabits <= 0) return gigabit;  // -1: unknown to the kernel
    return static_cast<std::uint64_t>(megabits) * bits_per_megabit;
}

[[nodiscard]] bool spreads_receives(const std::string& interface) {
    namespace fs = std::filesystem;
    const fs::path system = "/sys/class/net/" + interface;
    std::error_code unknown;
    if (not fs::exists(system / "device", unknown)) return true;
    std::size_t queues = 0;
    for (const fs::directory_entry& one : fs::directory_iterator(system / "queues", unknown))
        if (one.path().filename().string().starts_with("rx-")) ++queues;
    return queues > 1;
}

[[nodiscard]] std::vector<smb::server::network_interface> interfaces_of(
    const std::vector<own_address>& addresses) {
    std::vector<smb::server::network_interface> interfaces;
    for (const own_address& one : addresses) {
        const auto address = io::socket_address::ip(one.text, 0);
        const unsigned index = if_nametoindex(one.interface.c_str());
        if (not address or index == 0) continue;  // the interface is gone
        interfaces.push_back({.address = *address,
                              .index = index,
                              .bits_per_second = speed_of(one.interface),
                              .can_spread_receives = spreads_receives(one.interface)});
    }
    return interfaces;
}

// 10g, 2.5g, 100m, 1000000000. Returns std::nullopt if the text is not a speed.
[[nodiscard]] std::optional<std::uint64_t> parse_speed(std::string_view text) {
    double number = 0;
    const auto [rest, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(rest, text.data() + text.size());
    if (wrong != std::errc{} or unit.size() > 1) return std::nullopt;
    if (not unit.empty()) {
        constexpr std::string_view units = "kmgt";
        const std::size_t power = units.find(static_cast<char>(unit.front() | 0x20));
        if (power == std::string_view::npos) return std::nullopt;
        for (std::size_t i = 0; i <= power; ++i)
            number *= 1000;
    }
    constexpr double bits_max = 1e15;
    if (not(number >= 1 and number <= bits_max)) return std::nullopt;
    return static_cast<std::uint64_t>(number);
}

// Applies one property after an address. Returns false if it is unknown or invalid.
[[nodiscard]] bool take_property(std::string_view word, smb::server::network_interface& advertised) {
    if (word == "rss") {
        advertised.can_spread_receives = true;
        return true;
    }
    if (word.starts_with("speed=")) {
        const auto speed = parse_speed(word.substr(6));
        if (speed) advertised.bits_per_second = *speed;
        return speed.has_value();
    }
    if (not word.starts_with("index=")) return false;
    word.remove_prefix(6);
    const auto [rest, wrong] = std::from_chars(word.data(), word.data() + word.size(), advertised.index);
    return wrong == std::errc{} and rest == word.data() + word.size() and advertised.index != 0;
}

[[nodiscard]] std::expected<smb::server::network_interface, std::string> parse_one_advertised(
    std::string_view text, std::uint32_t index) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto address = io::socket_address::ip(text.substr(0, comma), 0);
    if (not address)
        return std::unexpected(std::string("begin with an IP address, or use 'none' as the only value"));
    smb::server::network_interface advertised{
        .address = *address, .index = index, .bits_per_second = gigabit};
    std::string_view rest = text.substr(comma);  // properties, each after a comma
    while (not rest.empty()) {
        rest.remove_prefix(1);
        const std::string_view word = rest.substr(0, rest.find(','));
        if (not take_property(word, advertised))
            return std::unexpected(
                fmt::format("invalid property '{}'; use rss, speed=RATE, or index=N, as in speed=10g", word));
        rest.remove_prefix(word.size());
    }
    return advertised;
}

}  // namespace

std::vector<std::string> own_addresses() {
    std::vector<std::string> reachable;
    for (own_address& one : addresses_that_are_up())
        if (not one.is_v6 and not one.is_loopback and not one.is_of_link)
            reachable.push_back(std::move(one.text));
    reachable.emplace_back("127.0.0.1");
    return reachable;
}

std::vector<smb::server::network_interface> own_interfaces(std::span<const io::socket_address> listening) {
    std::vector<own_address> reachable;
    std::vector<own_address> at_home;
    for (const own_address& one : addresses_that_are_up()) {
        const auto reaches = [&one](const io::socket_address& at) { return is_reached_at(one, at); };
        if (std::ranges::any_of(listening, reaches))
            reachable.push_back(one);
        else if (one.is_loopback and std::ranges::any_of(listening, is_everywhere))
            at_home.push_back(one);
    }
    return interfaces_of(reachable.empty() ? at_home : reachable);
}

std::expected<std::vector<smb::server::network_interface>, std::string> parse_advertised(
    std::span<const std::string> texts) {
    std::vector<smb::server::network_interface> advertised;
    if (texts.size() == 1 and texts.front() == "none") return advertised;
    for (const std::string& text : texts) {
        auto one = parse_one_advertised(text, static_cast<std::uint32_t>(advertised.size() + 1));
        if (not one) return std::unexpected(one.error());
        advertised.push_back(*one);
    }
    return advertised;
}

}  // namespace sluice::cli
