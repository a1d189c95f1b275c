#include "bench/io/copy_partner.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "bench/io/echo_load.hpp"
#include "bench/io/pipe_source.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench {

copy_partner::copy_partner(does what) {
    const tcp_pair made = connected_over_loopback();
    ours_ = made.server;
    theirs_ = made.client;
    pin_to(0);
    thread_ = std::thread([what, socket = theirs_] {
        pin_to(-1);
        static std::array<char, 1 << 18> block{};
        // MSG_TRUNC: TCP drops the bytes instead of copying them.
        const int flags = what == does::receive ? MSG_TRUNC : MSG_NOSIGNAL;
        while ((what == does::receive ? recv(socket, block.data(), block.size(), flags)
                                      : send(socket, block.data(), block.size(), flags)) > 0) {}
    });
}

copy_partner::~copy_partner() {
    if (ours_ >= 0) (void)close(ours_);
    (void)shutdown(theirs_, SHUT_RDWR);
    thread_.join();
    (void)close(theirs_);
}

int copy_partner::release() noexcept {
    const int released = ours_;
    ours_ = -1;
    return released;
}

}  // namespace sluice::bench
