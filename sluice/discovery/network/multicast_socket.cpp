#include "sluice/discovery/network/multicast_socket.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "sluice/base/ensure.hpp"

namespace sluice::discovery {

namespace {

[[nodiscard]] bool set(int descriptor, int level, int option, int value) noexcept {
    return ::setsockopt(descriptor, level, option, &value, sizeof value) == 0;
}

// Room for one IP_PKTINFO or IPV6_PKTINFO.
union control_room {
    std::array<char, CMSG_SPACE(sizeof(in6_pktinfo))> bytes;
    cmsghdr aligned;
};

struct arrival {
    unsigned interface = 0;
    bool is_to_group = false;
};

[[nodiscard]] arrival arrival_of(msghdr& message, const io::socket_address& group) noexcept {
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
        if (each->cmsg_level == IPPROTO_IP and each->cmsg_type == IP_PKTINFO) {
            in_pktinfo info{};
            std::memcpy(&info, CMSG_DATA(each), sizeof info);
            sockaddr_in wanted{};
            std::memcpy(&wanted, group.data(), sizeof wanted);
            return {.interface = static_cast<unsigned>(info.ipi_ifindex),
                    .is_to_group = info.ipi_addr.s_addr == wanted.sin_addr.s_addr};
        }
        if (each->cmsg_level == IPPROTO_IPV6 and each->cmsg_type == IPV6_PKTINFO) {
            in6_pktinfo info{};
            std::memcpy(&info, CMSG_DATA(each), sizeof info);
            sockaddr_in6 wanted{};
            std::memcpy(&wanted, group.data(), sizeof wanted);
            return {
                .interface = info.ipi6_ifindex,
                .is_to_group = std::memcmp(&info.ipi6_addr, &wanted.sin6_addr, sizeof wanted.sin6_addr) == 0};
        }
    }
    return {};
}

}  // namespace

result<multicast_socket> multicast_socket::open(const settings& given) noexcept {
    const bool is_v6 = given.group.family() == io::address_family::ip_v6;
    const int descriptor =
        ::socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
    if (descriptor < 0) return failure(error::last("socket"));
    multicast_socket opened({.descriptor = descriptor,
                             .kind = io::handle_kind::socket,
                             .readable = true,
                             .writable = true,
                             .nonblocking = true},
                            given.group);
    if (const auto done = opened.configure(given.hops); not done) return failure(done.error());
    return opened;
}

result<void> multicast_socket::configure(int hops) noexcept {
    const int own = descriptor();
    const bool is_shared = set(own, SOL_SOCKET, SO_REUSEADDR, 1) and set(own, SOL_SOCKET, SO_REUSEPORT, 1);
    const bool is_set =
        is_v6() ? set(own, IPPROTO_IPV6, IPV6_V6ONLY, 1) and set(own, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) and
                      set(own, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hops) and
                      set(own, IPPROTO_IPV6, IPV6_UNICAST_HOPS, hops) and
                      set(own, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1) and
                      set(own, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0)
                : set(own, IPPROTO_IP, IP_PKTINFO, 1) and set(own, IPPROTO_IP, IP_MULTICAST_TTL, hops) and
                      set(own, IPPROTO_IP, IP_TTL, hops) and set(own, IPPROTO_IP, IP_MULTICAST_LOOP, 1) and
                      set(own, IPPROTO_IP, IP_MULTICAST_ALL, 0);
    if (not is_shared or not is_set) return failure(error::last("setsockopt", own));
    const auto local =
        is_v6() ? io::socket_address::any_v6(group_.port()) : io::socket_address::any_v4(group_.port());
    if (::bind(own, static_cast<const sockaddr*>(local.data()), local.size()) != 0)
        return failure(error::last("bind"));
    return {};
}

int multicast_socket::membership(int option, unsigned interface) noexcept {
    if (is_v6()) {
        sockaddr_in6 group{};
        std::memcpy(&group, group_.data(), sizeof group);
        const ipv6_mreq wanted{.ipv6mr_multiaddr = group.sin6_addr, .ipv6mr_interface = interface};
        return ::setsockopt(descriptor(), IPPROTO_IPV6, option, &wanted, sizeof wanted);
    }
    sockaddr_in group{};
    std::memcpy(&group, group_.data(), sizeof group);
    const ip_mreqn wanted{
        .imr_multiaddr = group.sin_addr, .imr_address = {}, .imr_ifindex = static_cast<int>(interface)};
    return ::setsockopt(descriptor(), IPPROTO_IP, option, &wanted, sizeof wanted);
}

result<void> multicast_socket::join(unsigned interface) noexcept {
    ENSURE(interface != 0, "0 would let the kernel choose the interface");
    if (membership(is_v6() ? IPV6_JOIN_GROUP : IP_ADD_MEMBERSHIP, interface) != 0 and errno != EADDRINUSE)
        return failure(error::last("join multicast group", descriptor()));
    return {};
}

void multicast_socket::leave(unsigned interface) noexcept {
    (void)membership(is_v6() ? IPV6_LEAVE_GROUP : IP_DROP_MEMBERSHIP, interface);
}

std::optional<arrived_datagram> multicast_socket::receive(std::span<std::byte> into) noexcept {
    arrived_datagram arrived;
    iovec piece{.iov_base = into.data(), .iov_len = into.size()};
    control_room control{};
    msghdr message{};
    message.msg_name = arrived.from.data();
    message.msg_namelen = io::socket_address::capacity;
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    const ssize_t got = ::recvmsg(descriptor(), &message, MSG_DONTWAIT);
    if (got < 0) return std::nullopt;
    arrived.from.resize(message.msg_namelen);
    arrived.bytes = static_cast<std::size_t>(got);
    arrived.is_truncated = (message.msg_flags & MSG_TRUNC) != 0;
    const arrival how = arrival_of(message, group_);
    arrived.where = {.interface = how.interface, .is_v6 = is_v6()};
    arrived.is_to_group = how.is_to_group;
    ENSURE(arrived.bytes <= into.size());
    return arrived;
}

void multicast_socket::send(unsigned interface, const io::socket_address* to,
                            std::string_view bytes) noexcept {
    io::socket_address destination = to != nullptr ? *to : group_;
    iovec piece{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
    control_room control{};
    msghdr message{};
    message.msg_name = destination.data();
    message.msg_namelen = destination.size();
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    cmsghdr& head = control.aligned;
    if (is_v6()) {
        in6_pktinfo info{};
        info.ipi6_ifindex = interface;
        message.msg_controllen = CMSG_SPACE(sizeof info);
        head.cmsg_level = IPPROTO_IPV6;
        head.cmsg_type = IPV6_PKTINFO;
        head.cmsg_len = CMSG_LEN(sizeof info);
        std::memcpy(CMSG_DATA(&head), &info, sizeof info);
    } else {
        in_pktinfo info{};
        info.ipi_ifindex = static_cast<int>(interface);
        message.msg_controllen = CMSG_SPACE(sizeof info);
        head.cmsg_level = IPPROTO_IP;
        head.cmsg_type = IP_PKTINFO;
        head.cmsg_len = CMSG_LEN(sizeof info);
        std::memcpy(CMSG_DATA(&head), &info, sizeof info);
    }
    (void)::sendmsg(descriptor(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace sluice::discovery
