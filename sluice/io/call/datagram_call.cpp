#include "sluice/io/call/datagram_call.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "sluice/io/call/blocking.hpp"
#include "sluice/io/call/limits.hpp"
#include "sluice/io/call/socket_call.hpp"

namespace sluice::io {
namespace {

// Returns whether a call that returned no bytes met the end. An empty datagram has a sender, unless
// the sender has no name. It comes before the end, and datagrams with bytes may follow it.
bool has_ended(int descriptor, const msghdr& message) noexcept {
    if (message.msg_namelen != 0) return false;
    pollfd watched{.fd = descriptor, .events = POLLRDHUP, .revents = 0};
    if (::poll(&watched, 1, 0) <= 0 or (watched.revents & POLLRDHUP) == 0) return false;
    int bytes_waiting = 0;
    return ::ioctl(descriptor, FIONREAD, &bytes_waiting) != 0 or bytes_waiting == 0;
}

std::ptrdiff_t receive_call(int descriptor, std::span<const buffer> pieces,
                            datagram_request& request) noexcept {
    msghdr message{};
    message.msg_name = request.peer.data();
    message.msg_namelen = socket_address::capacity;
    message.msg_iov = const_cast<iovec*>(reinterpret_cast<const iovec*>(pieces.data()));
    message.msg_iovlen = pieces.size();
    // MSG_TRUNC: the call returns the length of the datagram, of which it has stored the part that
    // fits.
    const ssize_t length = ::recvmsg(descriptor, &message, MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0) return -1;
    request.peer.resize(message.msg_namelen);
    request.message_bytes = static_cast<std::size_t>(length);
    request.is_end = length == 0 and has_ended(descriptor, message);
    std::size_t room = 0;
    for (const buffer& piece : pieces)
        room += piece.size();
    return static_cast<std::ptrdiff_t>(std::min(request.message_bytes, room));
}

std::ptrdiff_t send_call(int descriptor, std::span<const buffer> pieces, datagram_request& request) noexcept {
    msghdr message{};
    const bool has_peer = request.peer.family() != address_family::unspecified;
    message.msg_name = has_peer ? request.peer.data() : nullptr;
    message.msg_namelen = has_peer ? request.peer.size() : 0;
    message.msg_iov = const_cast<iovec*>(reinterpret_cast<const iovec*>(pieces.data()));
    message.msg_iovlen = pieces.size();
    return ::sendmsg(descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

std::ptrdiff_t datagram_call(const native_handle& native, direction which, std::span<const buffer> pieces,
                             datagram_request& request) noexcept {
    // A stream would discard the bytes that MSG_TRUNC counts.
    if (native.kind != handle_kind::socket or native.stream) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (pieces.size() > limits::pieces_per_call_max) {
        errno = EMSGSIZE;
        return -1;
    }
    std::ptrdiff_t moved = -1;
    do {
        moved = which == direction::in ? receive_call(native.descriptor, pieces, request)
                                       : send_call(native.descriptor, pieces, request);
    } while (moved < 0 and errno == EINTR);
    return moved;
}

bool waits_for_receiver(const native_handle& native, const datagram_request& request) noexcept {
    if (request.peer.family() != address_family::local) return false;
    pollfd watched{.fd = native.descriptor, .events = POLLOUT, .revents = 0};
    return ::poll(&watched, 1, 0) > 0;
}

result<std::size_t> datagram_blocking(const native_handle& native, direction which,
                                      std::span<const buffer> pieces, datagram_request& request,
                                      deadline within) noexcept {
    const auto end = within.steady_end(deadline::steady_clock::now(), deadline::system_clock::now());
    auto pause = limits::lock_pause_min;
    for (;;) {
        const std::ptrdiff_t moved = datagram_call(native, which, pieces, request);
        if (moved >= 0) return static_cast<std::size_t>(moved);
        if (errno != EAGAIN) return failure(datagram_error(errno, native, which, request));
        if (which == direction::out and waits_for_receiver(native, request)) {
            const auto left = end - deadline::steady_clock::now();
            if (left <= left.zero()) return failure(datagram_error(ETIMEDOUT, native, which, request));
            std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, left));
            pause = std::min(pause * 2, limits::lock_pause_max);
            continue;
        }
        const deadline until = within.is_none() ? deadline() : deadline(end);
        if (const auto ready = wait_ready(native, which, until); not ready)
            return failure(datagram_error(ready.error().code(), native, which, request));
    }
}

error datagram_error(int code, const native_handle& native, direction which,
                     const datagram_request& request) noexcept {
    if (code == EOPNOTSUPP and (native.kind != handle_kind::socket or native.stream))
        return {code,
                which == direction::in ? "recvfrom on a handle without datagrams"
                                       : "sendto on a handle without datagrams",
                native.descriptor};
    if (which == direction::in) return {code, "recvfrom", native.descriptor};
    if (request.peer.family() == address_family::unspecified) return {code, "sendto", native.descriptor};
    return address_error(code, "sendto", request.peer);
}

}  // namespace sluice::io
