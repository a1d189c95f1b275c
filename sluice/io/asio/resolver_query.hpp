#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <asio/error.hpp>
#include <asio/ip/basic_resolver_results.hpp>
#include <asio/ip/resolver_base.hpp>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/asio/socket_object.hpp"
#include "sluice/io/name/name_resolver.hpp"

// A resolver's queries and answers; for resolver.hpp, not for users.
namespace sluice::io::detail {

/// A host, a service and the requested kinds of addresses.
struct asio_query {
    std::string host;
    std::string service;
    int family = AF_UNSPEC;
    int type = SOCK_STREAM;
    asio::ip::resolver_base::flags flags{};

    [[nodiscard]] bool has(asio::ip::resolver_base::flags which) const noexcept {
        return (flags & which) == which;
    }
};

/// Converts an error to that of Asio's resolvers.
[[nodiscard]] inline asio::error_code asio_lookup_error(const error& why) noexcept {
    switch (why.code()) {
        case ENOENT:
            return asio::error::host_not_found;
        case EAGAIN:
            return asio::error::host_not_found_try_again;
        case EIO:
            return asio::error::no_recovery;
        default:
            return asio_error(why);
    }
}

/// Returns the port of a service by number or name; 0 for an empty one. Blocks: for a name, during
/// the lookup in /etc/services.
[[nodiscard]] inline std::uint16_t asio_port_of(const asio_query& query, asio::error_code& why) {
    why.clear();
    if (query.service.empty()) return 0;
    std::uint16_t port = 0;
    const char* const end = query.service.data() + query.service.size();
    const auto [stop, failed] = std::from_chars(query.service.data(), end, port);
    if (failed == std::errc() and stop == end) return port;
    servent entry{};
    servent* found = nullptr;
    std::array<char, 2048> memory{};
    const char* const transport = query.type == SOCK_DGRAM ? "udp" : "tcp";
    using resolver = asio::ip::resolver_base;
    if (query.has(resolver::numeric_service) or
        ::getservbyname_r(query.service.c_str(), transport, &entry, memory.data(), memory.size(), &found) !=
            0 or
        found == nullptr) {
        why = asio::error::service_not_found;
        return 0;
    }
    return ntohs(static_cast<std::uint16_t>(entry.s_port));
}

/// Returns the wildcard address, or the loopback's, for a query without a host.
[[nodiscard]] inline std::vector<socket_address> asio_own_addresses(const asio_query& query,
                                                                    std::uint16_t port) {
    const bool is_passive = query.has(asio::ip::resolver_base::passive);
    std::vector<socket_address> made;
    if (query.family != AF_INET)
        made.push_back(is_passive ? socket_address::any_v6(port) : socket_address::loopback_v6(port));
    if (query.family != AF_INET6)
        made.push_back(is_passive ? socket_address::any_v4(port) : socket_address::loopback_v4(port));
    return made;
}

/// Returns the addresses of the requested family; if there are none and mapping is allowed, IPv4
/// addresses as IPv6.
[[nodiscard]] inline std::vector<socket_address> asio_wanted(const asio_query& query,
                                                             const std::vector<socket_address>& found) {
    const auto wanted = query.family == AF_INET ? address_family::ip_v4 : address_family::ip_v6;
    std::vector<socket_address> kept;
    for (const socket_address& each : found) {
        if (query.family == AF_UNSPEC or each.family() == wanted) kept.push_back(each);
    }
    using resolver = asio::ip::resolver_base;
    if (query.family != AF_INET6 or not kept.empty() or not query.has(resolver::v4_mapped)) return kept;
    for (const socket_address& each : found) {
        socket_address mapped = socket_address::any_v6(each.port());
        const auto bytes = each.ip_bytes();
        std::memcpy(static_cast<char*>(mapped.data()) + offsetof(sockaddr_in6, sin6_addr), bytes.data(),
                    bytes.size());
        kept.push_back(mapped);
    }
    return kept;
}

template <class Protocol>
[[nodiscard]] asio::ip::basic_resolver_results<Protocol> asio_results(
    const asio_query& query, const std::vector<socket_address>& found, asio::error_code& why) {
    using endpoint = typename Protocol::endpoint;
    std::vector<endpoint> endpoints;
    for (const socket_address& each : asio_wanted(query, found))
        endpoints.push_back(endpoint_of<endpoint>(each));
    why = endpoints.empty() ? asio::error_code(asio::error::host_not_found) : asio::error_code();
    return asio::ip::basic_resolver_results<Protocol>::create(endpoints.begin(), endpoints.end(), query.host,
                                                              query.service);
}

/// The answer to a query that needs no lookup: an error, or addresses. Neither: a lookup is needed.
struct asio_known {
    asio::error_code why;
    std::vector<socket_address> addresses;
    std::uint16_t port = 0;

    [[nodiscard]] bool is_all() const noexcept { return why or not addresses.empty(); }
};

[[nodiscard]] inline asio_known asio_known_of(const asio_query& query) {
    asio_known known;
    known.port = asio_port_of(query, known.why);
    if (known.why) return known;
    if (query.host.empty()) {
        known.addresses = asio_own_addresses(query, known.port);
    } else if (query.has(asio::ip::resolver_base::numeric_host)) {
        if (const auto numeric = socket_address::ip(query.host, known.port); numeric) {
            known.addresses.push_back(*numeric);
        } else {
            known.why = asio::error::host_not_found;
        }
    }
    return known;
}

}  // namespace sluice::io::detail
