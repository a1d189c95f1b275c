#include "sluice/discovery/network/socket_pair.hpp"

#include <algorithm>

namespace sluice::discovery {

result<socket_pair> socket_pair::open(const multicast_socket::settings& v4,
                                      const multicast_socket::settings& v6) {
    socket_pair opened;
    auto first = multicast_socket::open(v4);
    if (not first) return failure(first.error());
    opened.sockets_.push_back(*std::move(first));
    if (auto second = multicast_socket::open(v6)) opened.sockets_.push_back(*std::move(second));
    return opened;
}

std::vector<int> socket_pair::descriptors() const {
    std::vector<int> all;
    for (const multicast_socket& each : sockets_)
        all.push_back(each.descriptor());
    return all;
}

void socket_pair::join_only(std::span<const link> links) {
    for (multicast_socket& socket : sockets_) {
        for (const link& each : links)
            if (each.key.is_v6 == socket.is_v6() and not joined_.contains(each.key) and
                socket.join(each.key.interface))
                joined_.insert(each.key);
        std::erase_if(joined_, [&](const link_key& each) {
            if (each.is_v6 != socket.is_v6()) return false;
            if (std::ranges::find(links, each, &link::key) != links.end()) return false;
            socket.leave(each.interface);
            return true;
        });
    }
}

void socket_pair::receive(const std::function<void(const arrived_datagram&, bytes_view)>& take) {
    std::array<std::byte, limits::dns_message_bytes_max> room;
    for (multicast_socket& socket : sockets_)
        for (std::size_t count = 0; count != limits::datagrams_per_turn_max; ++count) {
            const auto arrived = socket.receive(room);
            if (not arrived) break;
            if (not arrived->is_truncated) take(*arrived, bytes_view(room.data(), arrived->bytes));
        }
}

void socket_pair::send(link_key on, const io::socket_address* to, std::string_view bytes) noexcept {
    for (multicast_socket& socket : sockets_)
        if (socket.is_v6() == on.is_v6) socket.send(on.interface, to, bytes);
}

}  // namespace sluice::discovery
