#include "sluice/io/call/transfer_call.hpp"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/call/limits.hpp"

namespace sluice::io {
namespace {

ssize_t call_socket(int fd, direction which, std::span<const buffer> pieces, wait waits) noexcept {
    const int flags = MSG_NOSIGNAL | (waits == wait::yes ? 0 : MSG_DONTWAIT);
    if (pieces.size() == 1) {
        return which == direction::in ? ::recv(fd, pieces[0].data(), pieces[0].size(), flags)
                                      : ::send(fd, pieces[0].data(), pieces[0].size(), flags);
    }
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(reinterpret_cast<const iovec*>(pieces.data()));
    message.msg_iovlen = pieces.size();
    return which == direction::in ? ::recvmsg(fd, &message, flags) : ::sendmsg(fd, &message, flags);
}

ssize_t call_file(const native_handle& native, direction which, std::span<const buffer> pieces,
                  extent_type offset, wait waits) noexcept {
    const int fd = native.descriptor;
    const bool is_ignored = which == direction::out and native.append_only;
    const auto at = is_ignored ? off_t{0} : static_cast<off_t>(offset);
    const auto* const list = reinterpret_cast<const iovec*>(pieces.data());
    const int count = static_cast<int>(pieces.size());
    if (waits == wait::no and not native.in_memory) {
        return which == direction::in ? ::preadv2(fd, list, count, at, RWF_NOWAIT)
                                      : ::pwritev2(fd, list, count, at, RWF_NOWAIT);
    }
    if (count == 1) {
        return which == direction::in ? ::pread(fd, pieces[0].data(), pieces[0].size(), at)
                                      : ::pwrite(fd, pieces[0].data(), pieces[0].size(), at);
    }
    return which == direction::in ? ::preadv(fd, list, count, at) : ::pwritev(fd, list, count, at);
}

// Named FIFOs and terminals do not support RWF_NOWAIT. One that is ready returns its data, and
// accepts PIPE_BUF bytes, without waiting, unless another process that shares it is faster.
ssize_t call_if_ready(int fd, direction which, std::span<const buffer> pieces) noexcept {
    const short events = which == direction::in ? POLLIN : POLLOUT;
    pollfd watched{.fd = fd, .events = events, .revents = 0};
    if (::poll(&watched, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    ENSURE(not pieces.empty(), "asks for no bytes of a stream, which are there at once");
    const auto* piece = pieces.data();
    while (piece + 1 != pieces.data() + pieces.size() and piece->size() == 0)
        ++piece;
    return which == direction::in
               ? ::read(fd, piece->data(), piece->size())
               : ::write(fd, piece->data(), std::min<std::size_t>(piece->size(), PIPE_BUF));
}

ssize_t call_pipe(const native_handle& native, direction which, std::span<const buffer> pieces,
                  wait waits) noexcept {
    const int fd = native.descriptor;
    const auto* const list = reinterpret_cast<const iovec*>(pieces.data());
    const int count = static_cast<int>(pieces.size());
    if (waits == wait::no and not native.nonblocking) {
        const ssize_t moved = which == direction::in ? ::preadv2(fd, list, count, -1, RWF_NOWAIT)
                                                     : ::pwritev2(fd, list, count, -1, RWF_NOWAIT);
        return moved < 0 and errno == EOPNOTSUPP ? call_if_ready(fd, which, pieces) : moved;
    }
    if (count == 1) {
        return which == direction::in ? ::read(fd, pieces[0].data(), pieces[0].size())
                                      : ::write(fd, pieces[0].data(), pieces[0].size());
    }
    return which == direction::in ? ::readv(fd, list, count) : ::writev(fd, list, count);
}

ssize_t call_for(const native_handle& native, direction which, std::span<const buffer> pieces,
                 extent_type offset, wait waits) noexcept {
    switch (native.kind) {
        case handle_kind::socket:
            return call_socket(native.descriptor, which, pieces, waits);
        case handle_kind::file:
            return call_file(native, which, pieces, offset, waits);
        default:
            return call_pipe(native, which, pieces, waits);
    }
}

}  // namespace

std::ptrdiff_t transfer_call(const native_handle& native, direction which, std::span<const buffer> pieces,
                             extent_type offset, wait waits) noexcept {
    ENSURE(pieces.size() <= limits::pieces_per_call_max, "more pieces than a system call takes");
    return checked_byte_count(call_for(native, which, pieces, offset, waits), bytes_in(pieces));
}

std::ptrdiff_t transfer_piece_through_library(const native_handle& native, direction which,
                                              const buffer& piece, extent_type offset, wait waits) noexcept {
    const int kept = errno;
    const std::ptrdiff_t moved = transfer_call(native, which, {&piece, 1}, offset, waits);
    const std::ptrdiff_t returned = moved >= 0 ? moved : -errno;
    errno = kept;
    return returned;
}

}  // namespace sluice::io
