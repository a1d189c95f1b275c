#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "sluice/io/call/socket_address.hpp"
#include "sluice/io/call/socket_options.hpp"
#include "sluice/io/handle/io_handle.hpp"
#include "sluice/io/loop/operation.hpp"
#include "sluice/io/stream/datagram.hpp"

namespace sluice::io {

enum class socket_type : std::uint8_t {
    stream,     ///< bytes in order: TCP, or Unix
    seqpacket,  ///< messages in order, over a connection: Unix
    datagram,   ///< messages: Unix, or UDP
};

/// The process at the other end of a Unix socket, at the time when it connected or listened.
struct peer_identity {
    std::int32_t process = 0;
    std::uint32_t user = 0;
    std::uint32_t group = 0;
};

/// A socket that is, or can be, connected.
///
/// Transfers are those of io_handle. For types with messages, a request is one message. A read
/// returns one, truncated to the buffers if they are smaller. A write sends one, complete. More
/// than limits::pieces_per_call_max segments are refused with EMSGSIZE, because they could not be
/// sent together. An empty message looks like the end. Writing to a closed peer fails with EPIPE or
/// ECONNRESET and never raises SIGPIPE.
///
/// The description stays in blocking mode, because O_NONBLOCK would be shared with every process
/// that has it open; operations that must not wait pass a flag in each call. Exception: a socket
/// used with splice.hpp is made non-blocking by the first such use with a limited wait, because the
/// kernel has no flag there. Handles of this library work the same either way.
class socket_handle : public io_handle {
public:
    constexpr socket_handle() noexcept = default;
    explicit constexpr socket_handle(native_handle native) noexcept : io_handle(native) {}

    struct connected_pair;

    /// Creates a socket without a connection: for async_connect, or to send datagrams from. Errors:
    /// EMFILE, ENFILE, EAFNOSUPPORT, EPROTONOSUPPORT for a type the family does not have.
    /// Allocates: nothing.
    [[nodiscard]] static result<socket_handle> create(address_family family,
                                                      socket_type type = socket_type::stream,
                                                      const socket_options& options = {}) noexcept;

    /// Creates a socket connected to `peer`. Errors name the peer: ECONNREFUSED, ENETUNREACH,
    /// EHOSTUNREACH, ENOENT (no such Unix socket), ETIMEDOUT (the deadline, or the network's own
    /// limit); and those of create(). Allocates: nothing. Blocks: until the deadline.
    [[nodiscard]] static result<socket_handle> connect(const socket_address& peer,
                                                       const socket_options& options = {},
                                                       deadline within = {}) noexcept;
    [[nodiscard]] static result<socket_handle> connect(const socket_address& peer, socket_type type,
                                                       const socket_options& options,
                                                       deadline within = {}) noexcept;

    /// Creates two Unix sockets connected to each other. Errors: EMFILE, ENFILE. Allocates:
    /// nothing.
    [[nodiscard]] static result<connected_pair> pair(socket_type type = socket_type::stream,
                                                     const socket_options& options = {}) noexcept;

    /// Takes ownership of an existing socket; on success the handle owns the descriptor. Errors:
    /// ENOTSOCK. Allocates: nothing.
    [[nodiscard]] static result<socket_handle> adopt(int descriptor) noexcept;

    /// Connects this socket. After a failure or a passed deadline it must be closed, because the
    /// kernel may still try. Errors, Blocks: as connect().
    [[nodiscard]] result<void> connect_to(const socket_address& peer, deadline within = {}) noexcept;

    /// Gives the socket a local address: the destination of datagrams, or the source of a
    /// connection. Errors name the address: EADDRINUSE, EADDRNOTAVAIL, EACCES.
    [[nodiscard]] result<void> bind(const socket_address& local) noexcept;

    /// Receives one datagram, or one message of a seqpacket socket, and the address of its sender.
    /// An empty datagram is a success with no bytes. See received_datagram for truncation. The
    /// offset of the request is not used.
    ///
    /// The end of a seqpacket connection is a success with no bytes and `is_end`. Limit: the kernel
    /// reports it like an empty message. If the peer has no name, and has ended the connection,
    /// empty messages at the end of its queue are reported as the end. Messages with bytes are
    /// never lost, and an empty message before them is reported as such. read() returns no bytes
    /// for both: use recvfrom() where empty messages have a meaning.
    /// Errors: ETIMEDOUT; ECONNREFUSED and similar errors, reported by the network for an earlier
    /// datagram; EOPNOTSUPP for a stream; EMSGSIZE for more than limits::pieces_per_call_max
    /// segments. Allocates: nothing. Blocks: until a datagram arrives or the deadline passes.
    /// Coroutines and senders: datagram_sender.hpp.
    [[nodiscard]] result<received_datagram<bytes_type>> recvfrom(io_request<bytes_type> request,
                                                                 deadline within = {}) noexcept;
    [[nodiscard]] result<received_datagram<buffers_type>> recvfrom(io_request<buffers_type> request,
                                                                   deadline within = {}) noexcept;

    /// Sends one datagram, complete, to an address; to the connected peer if `to` is unspecified.
    /// Errors name the address: EMSGSIZE if the datagram is too long for the socket or has too many
    /// segments, ECONNREFUSED, ENOENT (no such Unix socket), ENETUNREACH, EISCONN, EAFNOSUPPORT,
    /// EOPNOTSUPP for a stream; ETIMEDOUT. Allocates: nothing. Blocks: until the socket accepts it,
    /// or the deadline passes.
    [[nodiscard]] io_result<const_bytes_type> sendto(io_request<const_bytes_type> request,
                                                     const socket_address& to, deadline within = {}) noexcept;
    [[nodiscard]] io_result<const_buffers_type> sendto(io_request<const_buffers_type> request,
                                                       const socket_address& to,
                                                       deadline within = {}) noexcept;

    /// Ends one direction: after `out` the peer reads the end of file, after `in` we
    /// do. Errors: ENOTCONN.
    [[nodiscard]] result<void> shutdown(direction which) noexcept;

    /// Returns whether the peer has ended its direction, or the connection is lost; there may be
    /// unread bytes before that end. True for a closed handle. Allocates: nothing. Blocks: never.
    [[nodiscard]] bool is_peer_closed() const noexcept;

    /// Errors: ENOTCONN for the peer of an unconnected socket. Allocates: nothing.
    [[nodiscard]] result<socket_address> local_address() const noexcept;
    [[nodiscard]] result<socket_address> peer_address() const noexcept;

    /// Unix sockets only; the kernel guarantees the identity. Errors: EOPNOTSUPP for other
    /// families, ENOTCONN.
    [[nodiscard]] result<peer_identity> peer_credentials() const noexcept;
};

struct socket_handle::connected_pair {
    socket_handle first;
    socket_handle second;
};

}  // namespace sluice::io
