#include "bench/io/io_pending_peers.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio.hpp>
#include <deque>

#include "bench/io/pipe_source.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench {

pending_reads::pending_reads(std::size_t count) {
    const std::size_t quiet = count - 1;
    if (quiet > descriptors_max) reads_on_each_ = count / descriptors_max;
    for (std::size_t i = 0; i < quiet; i += reads_on_each_) {
        quiet_.push_back(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ENSURE(quiet_.back() >= 0, "the limit of open files exceeds 10,000 (ulimit -n)");
    }
    std::array<int, 2> ends{};
    ENSURE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    active_ = ends[0];
    sender_ = ends[1];
    pin_to(0);
}

pending_reads::~pending_reads() {
    (void)close(sender_);
}

void pending_reads::send_byte() const noexcept {
    const char byte = 0;
    ENSURE(send(sender_, &byte, 1, MSG_NOSIGNAL) == 1);
}

namespace peers {

void pending_by_hand(run& repeat, std::size_t pending, bool asks) {
    const pending_reads reads(pending);
    const int poller = epoll_create1(EPOLL_CLOEXEC);
    ENSURE(poller >= 0);
    const auto watch = [poller](int socket) {
        epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
        ENSURE(epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event) == 0);
    };
    std::ranges::for_each(reads.quiet(), watch);
    watch(reads.active());
    repeat.measure([&] {
        std::array<epoll_event, 256> events;
        char byte = 0;
        for (auto left = repeat.operations(); left != 0; --left) {
            reads.send_byte();
            if (asks) ENSURE(epoll_wait(poller, events.data(), static_cast<int>(events.size()), 0) == 1);
            ENSURE(recv(reads.active(), &byte, 1, MSG_DONTWAIT) == 1);
        }
    });
    (void)close(poller);
    for (const int each : reads.quiet())
        (void)close(each);
    (void)close(reads.active());
}

void pending_asio(run& repeat, std::size_t pending, bool sleeps) {
    using datagram_socket = asio::local::datagram_protocol::socket;
    const pending_reads reads(pending);
    asio::io_context context(1);  // one thread: it can omit its locks
    const auto stays = asio::make_work_guard(context);
    std::deque<datagram_socket> quiet;
    std::array<char, 1> unread;
    for (const int each : reads.quiet()) {
        auto& socket = quiet.emplace_back(context, asio::local::datagram_protocol(), each);
        for (std::size_t i = 0; i < reads.reads_on_each(); ++i)
            socket.async_receive(asio::buffer(unread), [](asio::error_code, std::size_t) {});
    }
    datagram_socket active(context, asio::local::datagram_protocol(), reads.active());
    std::array<char, 1> byte;
    (void)context.poll();
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            bool completed = false;
            active.async_receive(asio::buffer(byte), [&completed](asio::error_code failed, std::size_t) {
                ENSURE(not failed);
                completed = true;
            });
            reads.send_byte();
            while (not completed)
                (void)(sleeps ? context.run_one() : context.poll());
        }
    });
}

}  // namespace peers
}  // namespace sluice::bench
