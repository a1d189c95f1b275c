#include "sluice/io/call/socket_call.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <climits>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/blocking.hpp"
#include "sluice/io/call/limits.hpp"
#include "sluice/io/call/socket_options.hpp"

namespace sluice::io {
namespace {

int call_connect(int descriptor, const socket_address& peer) noexcept {
    return ::connect(descriptor, static_cast<const sockaddr*>(peer.data()), peer.size()) == 0 ? 0 : errno;
}

int set_send_timeout(int descriptor, deadline::duration limit) noexcept {
    using std::chrono::duration_cast, std::chrono::microseconds, std::chrono::seconds;
    ENSURE(limit > limit.zero(), "the kernel takes 0 for no limit");
    const auto whole = duration_cast<seconds>(limit);
    timeval value{.tv_sec = whole.count(), .tv_usec = duration_cast<microseconds>(limit - whole).count()};
    if (limit == deadline::duration::max()) value = {};  // to the kernel, 0 means no limit
    if (limit != deadline::duration::max() and value.tv_sec == 0)
        value.tv_usec = std::max<long>(1, value.tv_usec);
    return ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value) == 0 ? 0 : errno;
}

// A Unix socket whose listener's queue is full cannot be polled: it is "writable" all the time.
// Only connect itself waits for a free slot, up to the socket's send timeout.
int connect_local(int descriptor, const socket_address& peer, deadline within) noexcept {
    const auto started = deadline::steady_clock::now();
    if (within.is_zero()) {
        const int code = begin_connect(descriptor, peer);
        return code == EAGAIN ? ETIMEDOUT : code;
    }
    int code = EINTR;
    while (code == EINTR) {
        const auto left =
            within.remaining(started, deadline::steady_clock::now(), deadline::system_clock::now());
        if (left == deadline::duration::zero()) {
            code = ETIMEDOUT;
            break;
        }
        if (const int failed = set_send_timeout(descriptor, left); failed != 0) return failed;
        code = call_connect(descriptor, peer);
    }
    if (not within.is_none()) (void)set_send_timeout(descriptor, deadline::duration::max());
    return code == EAGAIN ? ETIMEDOUT : code;
}

result<socket_address> ask_address(const native_handle& native, int (*ask)(int, sockaddr*, socklen_t*),
                                   const char* operation) noexcept {
    socket_address address;
    socklen_t length = socket_address::capacity;
    if (ask(native.descriptor, static_cast<sockaddr*>(address.data()), &length) != 0) {
        return failure(error::last(operation, native.descriptor));
    }
    address.resize(length);
    return address;
}

}  // namespace

// accept(2), "Error handling".
bool is_of_dead_connection(int code) noexcept {
    switch (code) {
        case ECONNABORTED:
        case EPROTO:
        case ENETDOWN:
        case ENOPROTOOPT:
        case EHOSTDOWN:
        case ENONET:
        case EHOSTUNREACH:
        case ENETUNREACH:
            return true;
        default:
            return false;
    }
}

int accept_call(int listener, socket_address* peer) noexcept {
    for (unsigned dead = 0; dead != limits::dead_connections_per_accept_max;) {
        socklen_t length = socket_address::capacity;
        const int accepted =
            ::accept4(listener, peer != nullptr ? static_cast<sockaddr*>(peer->data()) : nullptr,
                      peer != nullptr ? &length : nullptr, SOCK_CLOEXEC);
        if (accepted >= 0) {
            if (peer != nullptr) peer->resize(length);
            return accepted;
        }
        if (errno == EINTR) continue;
        if (not is_of_dead_connection(errno)) return -1;
        ++dead;
    }
    errno = EAGAIN;  // the rest is still readable; other sockets have their turn first
    return -1;
}

// connect(2) has no flag against waiting, so the description is made non-blocking during the call.
int begin_connect(int descriptor, const socket_address& peer) noexcept {
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags < 0) return errno;
    const bool was_blocking = (flags & O_NONBLOCK) == 0;
    if (was_blocking and ::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0) return errno;
    const int code = call_connect(descriptor, peer);
    if (was_blocking) (void)::fcntl(descriptor, F_SETFL, flags);
    return code == EINTR ? EINPROGRESS : code;
}

int connect_outcome(int descriptor) noexcept {
    pollfd watched{.fd = descriptor, .events = POLLOUT, .revents = 0};
    if (::poll(&watched, 1, 0) <= 0) return EINPROGRESS;
    int code = 0;
    socklen_t length = sizeof code;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) != 0) return errno;
    return code;
}

int connect_blocking(const native_handle& native, const socket_address& peer, deadline within) noexcept {
    const int fd = native.descriptor;
    if (peer.family() == address_family::local) return connect_local(fd, peer, within);
    int code = begin_connect(fd, peer);
    if (code == EINPROGRESS) {
        if (auto waited = wait_ready(native, direction::out, within); not waited)
            return waited.error().code();
        code = connect_outcome(fd);
    }
    return code;
}

error address_error(int code, const char* operation, const socket_address& address) noexcept {
    std::array<char, socket_address::text_bytes_max> memory{};
    return error::with_path(code, operation, address.text_into(memory));
}

result<socket_address> local_address_of(const native_handle& native) noexcept {
    return ask_address(native, ::getsockname, "getsockname");
}

result<socket_address> peer_address_of(const native_handle& native) noexcept {
    return ask_address(native, ::getpeername, "getpeername");
}

result<void> make_nonblocking(native_handle& native) noexcept {
    if (native.nonblocking) return {};
    const int flags = ::fcntl(native.descriptor, F_GETFL);
    const bool is_set = flags >= 0 and (flags & O_NONBLOCK) != 0;
    if (flags < 0 or (not is_set and ::fcntl(native.descriptor, F_SETFL, flags | O_NONBLOCK) < 0)) {
        return failure(error::last("make non-blocking", native.descriptor));
    }
    native.nonblocking = true;
    return {};
}

result<void> set_socket_option(int descriptor, int level, int option, int value,
                               const char* operation) noexcept {
    if (::setsockopt(descriptor, level, option, &value, sizeof value) != 0) {
        return failure(error::last(operation, descriptor));
    }
    return {};
}

result<void> apply_options(int descriptor, const socket_options& options) noexcept {
    int family = 0;
    int type = 0;
    socklen_t length = sizeof family;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &length) != 0 or
        ::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) != 0) {
        return failure(error::last("ask the socket's type", descriptor));
    }
    const bool is_ip = family == AF_INET or family == AF_INET6;
    // The addresses of a socket that listens already are fixed.
    int listens = 0;
    (void)::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
    const auto bytes = [](std::size_t wanted) {
        return static_cast<int>(std::min<std::size_t>(wanted, INT_MAX));
    };
    const keep_alive_times& after = options.keep_alive_after;
    const bool is_tcp = is_ip and type == SOCK_STREAM;
    const auto times = [&](auto value) {
        return is_tcp and options.keep_alive and value != decltype(value){};
    };
    struct setting {
        bool wanted;
        int level, option, value;
        const char* operation;
    };
    const setting settings[] = {
        {is_tcp and options.no_delay, IPPROTO_TCP, TCP_NODELAY, 1, "set TCP_NODELAY"},
        {options.keep_alive, SOL_SOCKET, SO_KEEPALIVE, 1, "set SO_KEEPALIVE"},
        {times(after.idle), IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(after.idle.count()),
         "set TCP_KEEPIDLE"},
        {times(after.interval), IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(after.interval.count()),
         "set TCP_KEEPINTVL"},
        {times(after.probes), IPPROTO_TCP, TCP_KEEPCNT, static_cast<int>(after.probes), "set TCP_KEEPCNT"},
        {times(after.user_timeout), IPPROTO_TCP, TCP_USER_TIMEOUT,
         static_cast<int>(after.user_timeout.count()), "set TCP_USER_TIMEOUT"},
        {options.reuse_port, SOL_SOCKET, SO_REUSEPORT, 1, "set SO_REUSEPORT"},
        {family == AF_INET6 and listens == 0, IPPROTO_IPV6, IPV6_V6ONLY, options.v6_only ? 1 : 0,
         "set IPV6_V6ONLY"},
        {options.send_buffer_bytes != 0, SOL_SOCKET, SO_SNDBUF, bytes(options.send_buffer_bytes),
         "set SO_SNDBUF"},
        {options.receive_buffer_bytes != 0, SOL_SOCKET, SO_RCVBUF, bytes(options.receive_buffer_bytes),
         "set SO_RCVBUF"},
    };
    for (const setting& s : settings) {
        if (not s.wanted) continue;
        if (auto set = set_socket_option(descriptor, s.level, s.option, s.value, s.operation); not set)
            return set;
    }
    return {};
}

}  // namespace sluice::io
