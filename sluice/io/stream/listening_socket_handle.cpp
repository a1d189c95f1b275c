#include "sluice/io/stream/listening_socket_handle.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "sluice/io/call/blocking.hpp"
#include "sluice/io/call/socket_call.hpp"

namespace sluice::io {
namespace {

// Returns the path of a Unix socket, terminated; empty for other addresses.
std::array<char, socket_address::capacity> path_of(const socket_address& address) noexcept {
    std::array<char, socket_address::capacity> path{};
    const auto name = address.local_name();
    ENSURE(name.size() < path.size(), "a path has room for its terminator");
    if (not name.starts_with('\0')) std::copy(name.begin(), name.end(), path.begin());
    return path;
}

// Returns whether the path is a socket file that no process listens on.
bool is_stale(const char* path, const socket_address& address, socket_type type) noexcept {
    ENSURE(address.family() == address_family::local, "only a Unix socket leaves a file behind");
    struct stat found{};
    if (::lstat(path, &found) != 0 or not S_ISSOCK(found.st_mode)) return false;
    auto probe = socket_handle::create(address_family::local, type);
    return probe.has_value() and begin_connect(probe->descriptor(), address) == ECONNREFUSED;
}

int call_bind(int descriptor, const socket_address& local) noexcept {
    return ::bind(descriptor, static_cast<const sockaddr*>(local.data()), local.size()) == 0 ? 0 : errno;
}

result<void> bind_to(int descriptor, const socket_address& local, socket_type type,
                     bool replace_stale) noexcept {
    int code = call_bind(descriptor, local);
    if (code == 0) return {};
    const auto path = path_of(local);
    const bool has_path = path[0] != '\0';
    if (code != EADDRINUSE or not has_path) return failure(address_error(code, "bind", local));

    if (not is_stale(path.data(), local, type)) {
        return failure(
            address_error(code, "bind (something is there; remove it unless it is in use)", local));
    }
    if (not replace_stale) {
        return failure(address_error(
            code, "bind (left by a server that has died; remove it, or listen with replace_stale)", local));
    }
    if (::unlink(path.data()) != 0 and errno != ENOENT) {
        return failure(address_error(errno, "remove the socket of a server that has died", local));
    }
    code = call_bind(descriptor, local);
    if (code != 0) return failure(address_error(code, "bind", local));
    return {};
}

}  // namespace

result<listening_socket_handle> listening_socket_handle::listen(const socket_address& local,
                                                                const listen_options& options) noexcept {
    return listen(local, socket_type::stream, options);
}

result<listening_socket_handle> listening_socket_handle::listen(const socket_address& local, socket_type type,
                                                                const listen_options& options) noexcept {
    socket_options inherited = options.accepted;
    inherited.v6_only = options.v6_only;
    inherited.reuse_port = options.reuse_port;
    auto made = socket_handle::create(local.family(), type, inherited);
    if (not made) return failure(made.error());
    native_handle native = made->release();
    native.readable = native.writable = false;
    listening_socket_handle owner(native);

    if (auto set = make_nonblocking(owner.native_); not set) return failure(set.error());
    if (options.reuse_address and local.family() != address_family::local) {
        auto set = set_socket_option(owner.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1, "set SO_REUSEADDR");
        if (not set) return failure(set.error());
    }
    if (auto bound = bind_to(owner.descriptor(), local, type, options.replace_stale); not bound) {
        return failure(bound.error());
    }
    if (::listen(owner.descriptor(), options.backlog) != 0) {
        return failure(address_error(errno, "listen", local));
    }
    return owner;
}

result<listening_socket_handle> listening_socket_handle::adopt(int descriptor,
                                                               const socket_options& options) noexcept {
    int type = 0;
    int listens = 0;
    socklen_t bytes = sizeof type;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 or
        ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) != 0)
        return failure(error::last("adopt", descriptor));
    if (listens == 0) return failure({EINVAL, "adopt", descriptor});
    if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) return failure(error::last("adopt", descriptor));
    if (const auto set = apply_options(descriptor, options); not set) return failure(set.error());
    native_handle native = describe_socket(descriptor, type == SOCK_STREAM);
    native.readable = native.writable = false;
    if (const auto set = make_nonblocking(native); not set) return failure(set.error());
    return listening_socket_handle(native);
}

result<accepted> listening_socket_handle::accept(deadline within) noexcept {
    const auto started = deadline::steady_clock::now();
    accepted connection;
    for (;;) {
        const int descriptor = accept_call(native_.descriptor, &connection.peer);
        if (descriptor >= 0) {
            connection.socket = socket_handle(describe_socket(descriptor, native_.stream));
            return connection;
        }
        if (errno != EAGAIN) return failure(error::last("accept", native_.descriptor));
        // Another thread may have been faster after the wait below: the remaining time is counted
        // from the start.
        deadline left = within;
        if (within.which() == deadline::kind::relative) {
            left = within.remaining(started, deadline::steady_clock::now(), deadline::system_clock::now());
        }
        if (auto waited = wait_ready(native_, direction::in, left); not waited) {
            return failure({waited.error().code(), "accept", native_.descriptor});
        }
    }
}

result<socket_address> listening_socket_handle::local_address() const noexcept {
    return local_address_of(native_);
}

}  // namespace sluice::io
