#include "sluice/io/stream/send_queue.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <cerrno>

namespace sluice::io {

result<std::size_t> undelivered_bytes(const socket_handle& socket) noexcept {
    int bytes = 0;
    if (::ioctl(socket.native().descriptor, SIOCOUTQ, &bytes) != 0)
        return failure({errno, "query the unsent bytes of a socket"});
    return static_cast<std::size_t>(bytes);
}

}  // namespace sluice::io
