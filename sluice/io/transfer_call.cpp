#include "sluice/io/transfer_call.hpp"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "sluice/io/system_call.hpp"

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
    const auto at = static_cast<off_t>(offset);
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

ssize_t call_pipe(const native_handle& native, direction which, std::span<const buffer> pieces,
                  wait waits) noexcept {
    const int fd = native.descriptor;
    const auto* const list = reinterpret_cast<const iovec*>(pieces.data());
    const int count = static_cast<int>(pieces.size());
    if (waits == wait::no and not native.nonblocking) {
        return which == direction::in ? ::preadv2(fd, list, count, -1, RWF_NOWAIT)
                                      : ::pwritev2(fd, list, count, -1, RWF_NOWAIT);
    }
    if (count == 1) {
        return which == direction::in ? ::read(fd, pieces[0].data(), pieces[0].size())
                                      : ::write(fd, pieces[0].data(), pieces[0].size());
    }
    return which == direction::in ? ::readv(fd, list, count) : ::writev(fd, list, count);
}

}  // namespace

std::ptrdiff_t transfer_call(const native_handle& native, direction which, std::span<const buffer> pieces,
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

std::ptrdiff_t transfer_piece_through_library(const native_handle& native, direction which,
                                              const buffer& piece, extent_type offset, wait waits) noexcept {
    const int kept = errno;
    const std::ptrdiff_t moved = transfer_call(native, which, {&piece, 1}, offset, waits);
    const std::ptrdiff_t returned = moved >= 0 ? moved : -errno;
    errno = kept;
    return returned;
}

}  // namespace sluice::io
