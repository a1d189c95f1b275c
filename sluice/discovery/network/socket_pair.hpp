#pragma once

#include <array>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "sluice/base/bytes.hpp"
#include "sluice/discovery/limits.hpp"
#include "sluice/discovery/network/multicast_socket.hpp"

namespace sluice::discovery {

/// The sockets of one multicast protocol: one for IPv4, and one for IPv6 if the host has it.
/// Thread safety: one thread at a time.
class socket_pair {
public:
    /// Errors: those of multicast_socket::open for IPv4. IPv6 is omitted if it is not available.
    [[nodiscard]] static result<socket_pair> open(const multicast_socket::settings& v4,
                                                  const multicast_socket::settings& v6);

    [[nodiscard]] std::vector<int> descriptors() const;
    /// Joins the group on these links, and leaves it on all others.
    void join_only(std::span<const link> links);
    /// Calls the function for each datagram that has arrived, up to the limit per turn.
    void receive(const std::function<void(const arrived_datagram&, bytes_view)>& take);
    /// Sends to the group if `to` is null.
    void send(link_key on, const io::socket_address* to, std::string_view bytes) noexcept;

private:
    std::vector<multicast_socket> sockets_;
    std::set<link_key> joined_;
};

}  // namespace sluice::discovery
