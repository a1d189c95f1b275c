#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "sluice/base/result.hpp"
#include "sluice/discovery/network/link.hpp"
#include "sluice/io/call/handle.hpp"

namespace sluice::discovery {

/// A datagram as the kernel delivered it.
struct arrived_datagram {
    link_key where;
    io::socket_address from;
    std::size_t bytes = 0;
    bool is_truncated = false;
    bool is_to_group = false;  // else to an address of this host
};

/// A UDP socket that belongs to one multicast group on chosen interfaces. Other programs may use
/// the same port (SO_REUSEADDR, SO_REUSEPORT); packets of groups that only they have joined are not
/// received. Never blocks. Thread safety: one thread at a time.
class multicast_socket : public io::handle {
public:
    struct settings {
        io::socket_address group;  // with the port
        int hops = 1;              // of sent packets
    };

    /// Errors: EADDRINUSE, EACCES, EAFNOSUPPORT (no IPv6), EMFILE. Allocates: nothing.
    [[nodiscard]] static result<multicast_socket> open(const settings& given) noexcept;

    [[nodiscard]] const io::socket_address& group() const noexcept { return group_; }
    [[nodiscard]] bool is_v6() const noexcept { return group_.family() == io::address_family::ip_v6; }

    /// Errors: ENODEV if the interface is gone; ENOBUFS beyond the kernel's limit of groups.
    [[nodiscard]] result<void> join(unsigned interface) noexcept;
    void leave(unsigned interface) noexcept;

    /// Returns a datagram that has arrived, or std::nullopt if there is none.
    [[nodiscard]] std::optional<arrived_datagram> receive(std::span<std::byte> into) noexcept;
    /// Sends on an interface, to the group if `to` is null. A datagram that the kernel does not
    /// accept at once is lost, as any other may be.
    void send(unsigned interface, const io::socket_address* to, std::string_view bytes) noexcept;

private:
    explicit multicast_socket(io::native_handle native, const io::socket_address& group) noexcept
        : io::handle(native), group_(group) {}

    [[nodiscard]] result<void> configure(int hops) noexcept;
    [[nodiscard]] int membership(int option, unsigned interface) noexcept;

    io::socket_address group_;
};

}  // namespace sluice::discovery
