#include "sluice/io/stream/socket_handle.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "sluice/io/call/datagram_call.hpp"
#include "sluice/io/call/socket_call.hpp"

namespace sluice::io {
namespace {

int native_type(socket_type type) noexcept {
    switch (type) {
        case socket_type::stream:
            return SOCK_STREAM;
        case socket_type::seqpacket:
            return SOCK_SEQPACKET;
        case socket_type::datagram:
            return SOCK_DGRAM;
    }
    return -1;
}

int native_family(address_family family) noexcept {
    switch (family) {
        case address_family::ip_v4:
            return AF_INET;
        case address_family::ip_v6:
            return AF_INET6;
        case address_family::local:
            return AF_UNIX;
        case address_family::unspecified:
            return AF_UNSPEC;
    }
    return -1;
}

// buffer and const_buffer have one layout, that of iovec; the kernel only reads
// the bytes of a send.
template <class Piece>
std::span<const buffer> as_buffers(std::span<Piece> pieces) noexcept {
    return {reinterpret_cast<const buffer*>(pieces.data()), pieces.size()};
}

buffer as_buffer(std::span<const std::byte> bytes) noexcept {
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

result<socket_handle> socket_handle::create(address_family family, socket_type type,
                                            const socket_options& options) noexcept {
    const int made = ::socket(native_family(family), native_type(type) | SOCK_CLOEXEC, 0);
    if (made < 0) return failure(error::last("socket"));
    socket_handle owner(describe_socket(made, type == socket_type::stream));
    if (auto applied = apply_options(made, options); not applied) return failure(applied.error());
    return owner;
}

result<socket_handle> socket_handle::connect(const socket_address& peer, const socket_options& options,
                                             deadline within) noexcept {
    return connect(peer, socket_type::stream, options, within);
}

result<socket_handle> socket_handle::connect(const socket_address& peer, socket_type type,
                                             const socket_options& options, deadline within) noexcept {
    auto made = create(peer.family(), type, options);
    if (not made) return made;
    if (auto connected = made->connect_to(peer, within); not connected) return failure(connected.error());
    return made;
}

result<socket_handle::connected_pair> socket_handle::pair(socket_type type,
                                                          const socket_options& options) noexcept {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, native_type(type) | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return failure(error::last("socketpair"));
    }
    const bool is_stream = type == socket_type::stream;
    connected_pair made{.first = socket_handle(describe_socket(ends[0], is_stream)),
                        .second = socket_handle(describe_socket(ends[1], is_stream))};
    for (const int end : ends) {
        if (auto applied = apply_options(end, options); not applied) return failure(applied.error());
    }
    return made;
}

result<socket_handle> socket_handle::adopt(int descriptor) noexcept {
    int type = 0;
    socklen_t length = sizeof type;
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags < 0 or ::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0 or
        ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
        return failure(error::last("adopt a socket", descriptor));
    }
    native_handle native = describe_socket(descriptor, type == SOCK_STREAM);
    native.nonblocking = (flags & O_NONBLOCK) != 0;
    return socket_handle(native);
}

result<void> socket_handle::connect_to(const socket_address& peer, deadline within) noexcept {
    const int code = connect_blocking(native_, peer, within);
    if (code != 0) return failure(address_error(code, "connect", peer));
    return {};
}

result<void> socket_handle::bind(const socket_address& local) noexcept {
    if (::bind(native_.descriptor, static_cast<const sockaddr*>(local.data()), local.size()) != 0) {
        return failure(address_error(errno, "bind", local));
    }
    return {};
}

bool socket_handle::is_peer_closed() const noexcept {
    pollfd one{.fd = native_.descriptor, .events = POLLRDHUP, .revents = 0};
    if (not native_.is_valid()) return true;
    return ::poll(&one, 1, 0) == 1;
}

result<void> socket_handle::shutdown(direction which) noexcept {
    if (::shutdown(native_.descriptor, which == direction::in ? SHUT_RD : SHUT_WR) != 0) {
        return failure(error::last("shutdown", native_.descriptor));
    }
    return {};
}

result<socket_address> socket_handle::local_address() const noexcept {
    return local_address_of(native_);
}

result<socket_address> socket_handle::peer_address() const noexcept {
    return peer_address_of(native_);
}

result<peer_identity> socket_handle::peer_credentials() const noexcept {
    const auto own = local_address_of(native_);
    if (not own) return failure(own.error());
    // For a TCP socket the kernel returns credentials of no process.
    if (own->family() != address_family::local) {
        return failure({EOPNOTSUPP, "ask for the peer's credentials", native_.descriptor});
    }
    ucred native{};
    socklen_t length = sizeof native;
    if (::getsockopt(native_.descriptor, SOL_SOCKET, SO_PEERCRED, &native, &length) != 0) {
        return failure(error::last("ask for the peer's credentials", native_.descriptor));
    }
    if (native.pid == 0) return failure({ENOTCONN, "ask for the peer's credentials", native_.descriptor});
    return peer_identity{.process = native.pid, .user = native.uid, .group = native.gid};
}

// --- datagrams

result<received_datagram<bytes_type>> socket_handle::recvfrom(io_request<bytes_type> request,
                                                              deadline within) noexcept {
    datagram_request asked;
    const buffer single(request.buffers);
    const auto got = datagram_blocking(native_, direction::in, {&single, 1}, asked, within);
    if (not got) return failure(got.error());
    ENSURE(*got <= request.buffers.size(), "more of a datagram is stored than fits");
    return received_datagram<bytes_type>{.buffers = request.buffers.first(*got),
                                         .peer = asked.peer,
                                         .message_bytes = asked.message_bytes,
                                         .is_end = asked.is_end};
}

result<received_datagram<buffers_type>> socket_handle::recvfrom(io_request<buffers_type> request,
                                                                deadline within) noexcept {
    datagram_request asked;
    const auto got = datagram_blocking(native_, direction::in, as_buffers(request.buffers), asked, within);
    if (not got) return failure(got.error());
    return received_datagram<buffers_type>{.buffers = detail::shortened(request.buffers, *got),
                                           .peer = asked.peer,
                                           .message_bytes = asked.message_bytes,
                                           .is_end = asked.is_end};
}

io_result<const_bytes_type> socket_handle::sendto(io_request<const_bytes_type> request,
                                                  const socket_address& to, deadline within) noexcept {
    datagram_request asked{.peer = to};
    const buffer single = as_buffer(request.buffers);
    const auto sent = datagram_blocking(native_, direction::out, {&single, 1}, asked, within);
    if (not sent) return failure(sent.error());
    ENSURE(*sent == request.buffers.size(), "a datagram is sent as a whole");
    return request.buffers;
}

io_result<const_buffers_type> socket_handle::sendto(io_request<const_buffers_type> request,
                                                    const socket_address& to, deadline within) noexcept {
    datagram_request asked{.peer = to};
    const auto sent = datagram_blocking(native_, direction::out, as_buffers(request.buffers), asked, within);
    if (not sent) return failure(sent.error());
    return request.buffers;
}

}  // namespace sluice::io
