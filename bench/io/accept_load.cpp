#include "bench/io/accept_load.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "bench/io/pipe_source.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench {
namespace {

sockaddr_in loopback(std::uint16_t port) noexcept {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

}  // namespace

accept_load::accept_load(unsigned burst, std::uint64_t connections)
    : burst_(burst), connections_(connections / burst * burst) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const linger by_reset{.l_onoff = 1, .l_linger = 0};
    ENSURE(listener_ >= 0 and setsockopt(listener_, SOL_SOCKET, SO_LINGER, &by_reset, sizeof by_reset) == 0);
    sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    ENSURE(bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0 and
           listen(listener_, 4096) == 0 and
           getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    port_ = ntohs(address.sin_port);
    pin_to(0);
}

accept_load::~accept_load() {
    if (client_.joinable()) client_.join();
    if (listener_ >= 0) (void)close(listener_);
}

int accept_load::release_listener() noexcept {
    const int released = listener_;
    listener_ = -1;
    return released;
}

void accept_load::begin() {
    client_ = std::thread([this] {
        pin_to(-1);
        connect_all();
    });
}

void accept_load::connect_all() const {
    const sockaddr_in address = loopback(port_);
    std::vector<int> open;
    for (std::uint64_t made = 0; made < connections_; made += burst_) {
        for (unsigned i = 0; i < burst_; ++i) {
            open.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            ENSURE(open.back() >= 0);
            const int failed =
                connect(open.back(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
            ENSURE(failed == 0 or errno == ECONNRESET);  // the server may have been faster
        }
        for (const int each : open) {
            char byte = 0;
            ENSURE(recv(each, &byte, 1, 0) <= 0);
            (void)close(each);
        }
        open.clear();
    }
}

}  // namespace sluice::bench
