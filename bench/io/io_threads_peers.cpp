#include "bench/io/io_threads_peers.hpp"

#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_gettime

#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <asio.hpp>
#include <atomic>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "bench/io/echo_load.hpp"
#include "bench/io/echo_session_asio.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench::peers {
namespace {

double thread_time_ns() {
    timespec now{};
    ENSURE(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The constructor of the load has pinned this process to one CPU.
void unpin() {
    cpu_set_t all;
    std::memset(&all, 0xff, sizeof all);
    (void)sched_setaffinity(0, sizeof all, &all);
}

}  // namespace

void run_threads(run& repeat, unsigned threads, const std::function<void()>& begin,
                 const std::function<void()>& serve) {
    std::atomic<double> spent_ns = 0;
    repeat.measure([&] {
        std::vector<std::jthread> all;
        for (unsigned i = 0; i < threads; ++i) {
            all.emplace_back([&, is_first = i == 0] {
                unpin();
                if (is_first) begin();
                serve();
                spent_ns.fetch_add(thread_time_ns());
            });
        }
    });
    repeat.cpu_spent(spent_ns.load());
}

void echo_epoll_threads(run& repeat, unsigned connections, unsigned threads) {
    echo_load load(connections, repeat.operations());
    const int poller = epoll_create1(EPOLL_CLOEXEC);
    ENSURE(poller >= 0);
    const auto watch = [poller](int socket, int how) {
        epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.fd = socket}};
        ENSURE(epoll_ctl(poller, how, socket, &event) == 0);
    };
    for (const int each : load.server_ends())
        watch(each, EPOLL_CTL_ADD);
    std::atomic<unsigned> open = connections;
    load.begin();
    run_threads(
        repeat, threads, [] {},
        [&] {
            epoll_event event{};
            while (open.load() != 0) {
                // At intervals, to notice that another thread has closed the last connection.
                if (epoll_wait(poller, &event, 1, 10) != 1) continue;
                const int socket = event.data.fd;
                char byte = 0;
                if (recv(socket, &byte, 1, MSG_DONTWAIT) == 1) {
                    ENSURE(send(socket, &byte, 1, MSG_NOSIGNAL) == 1);
                    watch(socket, EPOLL_CTL_MOD);
                } else {
                    (void)close(socket);
                    --open;
                }
            }
        });
    (void)close(poller);
}

void echo_asio_threads(run& repeat, unsigned connections, unsigned threads) {
    echo_load load(connections, repeat.operations());
    asio::io_context context(static_cast<int>(threads));
    std::deque<asio_session> sessions;
    for (const int each : load.server_ends()) {
        sessions.push_back({asio::ip::tcp::socket(context, asio::ip::tcp::v4(), each)});
    }
    load.begin();
    run_threads(
        repeat, threads,
        [&] {
            for (auto& each : sessions)
                each.read();
        },
        [&] { context.run(); });
}

}  // namespace sluice::bench::peers
