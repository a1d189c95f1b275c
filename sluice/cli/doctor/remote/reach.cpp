#include "sluice/cli/doctor/remote/reach.hpp"

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace sluice::cli::doctor {
namespace {

constexpr const char* check = "connection";
constexpr unsigned usual_mtu = 1500;
constexpr unsigned distant_us = 20'000;

[[nodiscard]] std::string outcome_text(const connect_attempt& one) {
    return fmt::format("{}: {} after {} ms", one.address,
                       one.code == 0 ? "connected" : std::strerror(one.code), one.took.count());
}

struct explanation {
    std::string what;
    std::string remedy;
};

[[nodiscard]] explanation explain(reach kind, std::string_view host, std::uint16_t port) {
    switch (kind) {
        case reach::closed:
            return {.what = fmt::format("port {} of '{}' is closed: the host answers, but no program listens "
                                        "there",
                                        port, host),
                    .remedy = fmt::format("start the server on that host, or use its port; on that host: "
                                          "sluice status; ss -tlnp 'sport = :{}'",
                                          port)};
        case reach::filtered:
            return {
                .what = fmt::format("port {} of '{}' does not answer: a firewall drops the packets, or "
                                    "the host is off",
                                    port, host),
                .remedy = fmt::format("on the server: nft add rule inet filter input tcp dport {} accept; "
                                      "many providers block port 445, so use another port or a VPN there",
                                      port)};
        case reach::no_route:
            return {.what = fmt::format("there is no route to '{}'", host),
                    .remedy = fmt::format("ip route get {}; connect the network or the VPN", host)};
        case reach::local_refusal:
            return {.what = fmt::format("this host does not permit connections to port {}", port),
                    .remedy = fmt::format("nft list ruleset; permit output to tcp dport {}", port)};
        case reach::open:
        case reach::other:
            break;
    }
    return {.what = fmt::format("the connection to port {} of '{}' failed", port, host),
            .remedy = fmt::format("nc -vz {} {}", host, port)};
}

}  // namespace

reach reach_of(int code) noexcept {
    switch (code) {
        case 0:
            return reach::open;
        case ECONNREFUSED:
            return reach::closed;
        case ETIMEDOUT:
            return reach::filtered;
        case EHOSTUNREACH:
        case ENETUNREACH:
        case ENETDOWN:
        case EHOSTDOWN:
        case EADDRNOTAVAIL:
            return reach::no_route;
        case EACCES:
        case EPERM:
            return reach::local_refusal;
        default:
            return reach::other;
    }
}

connect_attempt try_connect(const io::socket_address& address, std::chrono::milliseconds within,
                            io::socket_handle& into) {
    const auto began = std::chrono::steady_clock::now();
    auto connected = io::socket_handle::connect(address, {}, within);
    const auto took = std::chrono::steady_clock::now() - began;
    connect_attempt one{.address = address.text(),
                        .code = connected ? 0 : connected.error().code(),
                        .took = std::chrono::duration_cast<std::chrono::milliseconds>(took)};
    if (connected) into = std::move(*connected);
    return one;
}

std::vector<finding> judge_attempts(std::string_view host, std::uint16_t port,
                                    std::span<const connect_attempt> attempts) {
    std::string evidence;
    const connect_attempt* worst = nullptr;
    std::size_t open = 0;
    for (const connect_attempt& one : attempts) {
        evidence += (evidence.empty() ? "" : "; ") + outcome_text(one);
        open += one.code == 0 ? 1 : 0;
        // The first failure is the one of the address that clients prefer.
        if (one.code != 0 and worst == nullptr) worst = &one;
    }
    if (worst == nullptr)
        return {{.level = severity::note,
                 .check = check,
                 .what = fmt::format("port {} is open", port),
                 .evidence = evidence,
                 .remedy = {}}};
    explanation why = explain(reach_of(worst->code), host, port);
    if (open == 0)
        return {{.level = severity::problem,
                 .check = check,
                 .what = std::move(why.what),
                 .evidence = evidence,
                 .remedy = std::move(why.remedy)}};
    return {{.level = severity::warning,
             .check = check,
             .what = fmt::format("the server answers on {} of {} addresses; clients that try another address "
                                 "first wait or fail",
                                 open, attempts.size()),
             .evidence = evidence,
             .remedy = "let the server listen at all its addresses, or remove the wrong ones from DNS and "
                       "/etc/hosts"}};
}

path_figures figures_of(const io::socket_handle& connected) {
    path_figures figures;
    const int descriptor = connected.native().descriptor;
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
        figures.round_trip_us = info.tcpi_rtt;
        figures.deviation_us = info.tcpi_rttvar;
        figures.retransmissions = info.tcpi_total_retrans;
    }
    int mtu = 0;
    size = sizeof(mtu);
    if (::getsockopt(descriptor, IPPROTO_IP, IP_MTU, &mtu, &size) == 0 and mtu > 0)
        figures.mtu = static_cast<unsigned>(mtu);
    size = sizeof(mtu);
    if (figures.mtu == 0 and ::getsockopt(descriptor, IPPROTO_IPV6, IPV6_MTU, &mtu, &size) == 0 and mtu > 0)
        figures.mtu = static_cast<unsigned>(mtu);
    std::array<char, 32> name{};
    size = name.size() - 1;
    if (::getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0)
        figures.congestion_control = name.data();
    return figures;
}

std::vector<finding> judge_path(const path_figures& seen) {
    std::vector<finding> found;
    const std::string figures = fmt::format(
        "round trip {:.1f} ms (deviation {:.1f} ms), path MTU {} bytes, {} retransmissions, "
        "congestion control {}",
        seen.round_trip_us / 1e3, seen.deviation_us / 1e3, seen.mtu, seen.retransmissions,
        seen.congestion_control.empty() ? "unknown" : seen.congestion_control);
    found.push_back({.level = severity::note,
                     .check = "path",
                     .what = "each request without data waits for one round trip",
                     .evidence = figures,
                     .remedy = {}});
    if (seen.round_trip_us > distant_us)
        found.push_back({.level = severity::warning,
                         .check = "path",
                         .what = "the server is far away: operations on many small files are slow",
                         .evidence = figures,
                         .remedy = "use a nearer server, or copy many small files as one archive; on the "
                                   "sender: sysctl -w net.ipv4.tcp_congestion_control=bbr"});
    if (seen.mtu != 0 and seen.mtu < usual_mtu)
        found.push_back({.level = severity::warning,
                         .check = "path",
                         .what = fmt::format("the path carries packets of at most {} bytes, as through a "
                                             "tunnel or VPN; large messages hang if a firewall drops ICMP",
                                             seen.mtu),
                         .evidence = figures,
                         .remedy = "sysctl -w net.ipv4.tcp_mtu_probing=1, on both hosts"});
    if (seen.retransmissions != 0)
        found.push_back({.level = severity::warning,
                         .check = "path",
                         .what = "packets were lost or delayed while few were sent",
                         .evidence = figures,
                         .remedy = "ip -s link; check the cable, the duplex mode and the wireless signal"});
    return found;
}

}  // namespace sluice::cli::doctor
