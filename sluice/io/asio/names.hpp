#pragma once

#include <asio.hpp>
#include <chrono>

#include "sluice/io/asio/connect.hpp"
#include "sluice/io/asio/datagram_socket.hpp"
#include "sluice/io/asio/resolver.hpp"
#include "sluice/io/asio/signal_set.hpp"
#include "sluice/io/asio/socket_acceptor.hpp"
#include "sluice/io/asio/socket_iostream.hpp"
#include "sluice/io/asio/stream_descriptor.hpp"
#include "sluice/io/asio/stream_socket.hpp"
#include "sluice/io/asio/waitable_timer.hpp"

// All of Asio under one name, with its I/O on our multiplexer: declarations here hide those of Asio
// with the same name, and everything else (buffers, composed operations, executors, coroutines,
// channels) is Asio's. In a program: `namespace net = sluice::io::asio_names;`, then
// net::io_context, net::ip::tcp::socket and so on. A program written for Asio runs on it unchanged
// with in_place.hpp.

namespace sluice::io::asio_names {

using namespace ::asio;  // NOLINT: the purpose of this namespace

using io_context = asio_context;

using steady_timer = basic_waitable_timer<std::chrono::steady_clock>;
using system_timer = basic_waitable_timer<std::chrono::system_clock>;
using high_resolution_timer = basic_waitable_timer<std::chrono::high_resolution_clock>;
using signal_set = basic_signal_set<>;

namespace ip {

using namespace ::asio::ip;  // NOLINT: as above

/// Asio's protocol, with our sockets.
class tcp : public ::asio::ip::tcp {
public:
    using protocol = ::asio::ip::tcp;
    using socket = basic_stream_socket<protocol>;
    using acceptor = basic_socket_acceptor<protocol>;
    using resolver = basic_resolver<protocol>;
    using iostream = basic_socket_iostream<protocol>;
};

class udp : public ::asio::ip::udp {
public:
    using protocol = ::asio::ip::udp;
    using socket = basic_datagram_socket<protocol>;
    using resolver = basic_resolver<protocol>;
};

}  // namespace ip

namespace posix {

using namespace ::asio::posix;  // NOLINT: as above; stream_descriptor.hpp has the rest

}  // namespace posix

namespace local {

using namespace ::asio::local;  // NOLINT: as above

class stream_protocol : public ::asio::local::stream_protocol {
public:
    using protocol = ::asio::local::stream_protocol;
    using socket = basic_stream_socket<protocol>;
    using acceptor = basic_socket_acceptor<protocol>;
    using iostream = basic_socket_iostream<protocol>;
};

class datagram_protocol : public ::asio::local::datagram_protocol {
public:
    using protocol = ::asio::local::datagram_protocol;
    using socket = basic_datagram_socket<protocol>;
};

/// Connects two sockets to each other. Throws: asio::system_error.
template <class Socket>
void connect_pair(Socket& one, Socket& other) {
    const auto protocol = typename Socket::endpoint_type().protocol();
    int ends[2];
    detail::asio_throw_if(
        detail::asio_called(::socketpair(protocol.family(), protocol.type() | SOCK_CLOEXEC, 0, ends)),
        "connect_pair");
    one.assign(protocol, ends[0]);
    other.assign(protocol, ends[1]);
}

}  // namespace local

}  // namespace sluice::io::asio_names
