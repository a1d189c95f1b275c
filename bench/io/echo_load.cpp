#include "bench/io/echo_load.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "bench/io/pipe_source.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench {
namespace {

// Cubic, whatever the machine's default: others (BBR) pace with timers, which this does not
// measure.
void set_options(int socket) {
    const int on = 1;
    ENSURE(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    static constexpr std::string_view cubic = "cubic";
    (void)setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, cubic.data(), static_cast<socklen_t>(cubic.size()));
}

}  // namespace

tcp_pair connected_over_loopback() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ENSURE(listener >= 0 and bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0);
    ENSURE(listen(listener, 1) == 0 and
           getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    tcp_pair made{.server = -1, .client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ENSURE(made.client >= 0 and
           connect(made.client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    made.server = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ENSURE(made.server >= 0);
    set_options(made.client);
    set_options(made.server);
    (void)close(listener);
    return made;
}

echo_load::echo_load(unsigned connections, std::uint64_t echoes) : echoes_(echoes) {
    for (unsigned i = 0; i < connections; ++i) {
        const tcp_pair made = connected_over_loopback();
        client_ends_.push_back(made.client);
        server_ends_.push_back(made.server);
    }
    pin_to(0);
}

echo_load::~echo_load() {
    if (client_.joinable()) client_.join();
    for (const int each : client_ends_)
        (void)close(each);
}

void echo_load::begin() {
    client_ = std::thread([this] {
        pin_to(-1);
        client_ends_.size() == 1 ? converse_alone() : converse();
        for (const int each : client_ends_)
            (void)shutdown(each, SHUT_WR);
    });
}

void echo_load::converse_alone() const {
    char byte = 0;
    for (std::uint64_t i = 0; i < echoes_; ++i) {
        ENSURE(send(client_ends_[0], &byte, 1, 0) == 1 and recv(client_ends_[0], &byte, 1, 0) == 1);
    }
}

// The same number of bytes on every connection, so that a server may serve them in sequence.
void echo_load::converse() const {
    const int poller = epoll_create1(EPOLL_CLOEXEC);
    ENSURE(poller >= 0);
    char byte = 0;
    std::vector<std::uint64_t> unsent(client_ends_.size(), echoes_ / client_ends_.size());
    std::uint64_t uncome = 0;
    for (std::size_t i = 0; i < client_ends_.size(); ++i) {
        epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
        ENSURE(epoll_ctl(poller, EPOLL_CTL_ADD, client_ends_[i], &event) == 0);
        uncome += unsent[i];
        if (unsent[i] == 0) continue;
        --unsent[i];
        ENSURE(send(client_ends_[i], &byte, 1, 0) == 1);
    }
    std::array<epoll_event, 1024> events;
    while (uncome != 0) {
        const int count = epoll_wait(poller, events.data(), static_cast<int>(events.size()), -1);
        for (int i = 0; i < count; ++i) {
            const std::size_t which = events[static_cast<std::size_t>(i)].data.u64;
            ENSURE(recv(client_ends_[which], &byte, 1, MSG_DONTWAIT) == 1);
            --uncome;
            if (unsent[which] == 0) continue;
            --unsent[which];
            ENSURE(send(client_ends_[which], &byte, 1, 0) == 1);
        }
    }
    (void)close(poller);
}

}  // namespace sluice::bench
