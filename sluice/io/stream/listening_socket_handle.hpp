#pragma once

#include "sluice/io/call/limits.hpp"
#include "sluice/io/call/socket_address.hpp"
#include "sluice/io/handle/multiplexable_handle.hpp"
#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::io {

struct listen_options {
    int backlog = limits::listen_backlog;  ///< connections that may wait to be accepted; the
                                           ///< kernel has a limit too
    bool reuse_address = true;             ///< do not wait until the kernel has dropped
                                           ///< connections of a predecessor
    bool reuse_port = false;               ///< several listeners share the port
    bool v6_only = false;                  ///< an IPv6 listener does not accept IPv4 as well
    /// Unix: a socket file that refuses connections has been left by a server that died; replace
    /// it. If two servers do so at the same time, both may succeed: make them exclude each other
    /// first.
    bool replace_stale = false;
    socket_options accepted{};  ///< the initial options of connections
};

/// A connection, and its peer.
struct accepted {
    socket_handle socket;
    socket_address peer;
};

/// A socket that accepts connections. It transfers no bytes: the accepted sockets do that.
///
/// Internally non-blocking: between a poll that reports a connection and the accept, the connection
/// may be lost, and an accept that waits would then wait for another.
///
/// Out of descriptors (EMFILE, ENFILE) or memory (ENOBUFS, ENOMEM), accept fails and the connection
/// stays in the queue, so the next accept is tried, and fails, at once. The library does not retry:
/// wait before the next accept, for a connection to be closed or some milliseconds; otherwise the
/// loop spins.
class listening_socket_handle : public multiplexable_handle {
public:
    constexpr listening_socket_handle() noexcept = default;
    explicit constexpr listening_socket_handle(native_handle native) noexcept
        : multiplexable_handle(native) {}

    /// Binds to `local` and listens; port 0 lets the kernel choose a port, which local_address()
    /// returns. The file of a Unix socket stays when the handle is closed: the server must remove
    /// it. Errors name the address: EADDRINUSE, EADDRNOTAVAIL, EACCES; and those of socket(2).
    /// Allocates: nothing.
    [[nodiscard]] static result<listening_socket_handle> listen(const socket_address& local,
                                                                const listen_options& options = {}) noexcept;
    [[nodiscard]] static result<listening_socket_handle> listen(const socket_address& local, socket_type type,
                                                                const listen_options& options) noexcept;

    /// Takes a socket that listens, such as one of a service manager. `options`, but for v6_only,
    /// apply to its connections. Sets close-on-exec, and O_NONBLOCK for all processes that have it.
    /// On error, the descriptor stays open. Errors: ENOTSOCK; EBADF; EINVAL if it does not listen.
    /// Allocates: nothing.
    [[nodiscard]] static result<listening_socket_handle> adopt(int descriptor,
                                                               const socket_options& options) noexcept;

    /// Returns the next connection. Errors: ETIMEDOUT; EMFILE, ENFILE, ENOBUFS, ENOMEM (see above).
    /// Connections that died while they waited are skipped. Allocates: nothing. Blocks: until the
    /// deadline.
    [[nodiscard]] result<accepted> accept(deadline within = {}) noexcept;
    [[nodiscard]] result<accepted> try_accept() noexcept { return accept(deadline::zero()); }

    /// Allocates: nothing.
    [[nodiscard]] result<socket_address> local_address() const noexcept;
};

}  // namespace sluice::io
