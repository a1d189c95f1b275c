#include "bench/io/io_accept_peers.hpp"

#include <liburing.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio.hpp>

#include "bench/io/accept_load.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench::peers {

void accept_calls(run& repeat, unsigned burst) {
    accept_load load(burst, repeat.operations());
    repeat.did(load.connections());
    const int listener = load.release_listener();
    load.begin();
    repeat.measure([&] {
        pollfd watched{.fd = listener, .events = POLLIN, .revents = 0};
        for (std::uint64_t left = load.connections(); left != 0;) {
            ENSURE(poll(&watched, 1, -1) == 1);
            for (;;) {
                sockaddr_storage peer;
                socklen_t length = sizeof peer;
                const int fresh =
                    accept4(listener, reinterpret_cast<sockaddr*>(&peer), &length, SOCK_CLOEXEC);
                if (fresh < 0) break;
                (void)close(fresh);
                --left;
            }
        }
    });
    (void)close(listener);
}

namespace {

struct asio_server {
    asio::ip::tcp::acceptor acceptor;
    std::uint64_t left;
    asio::ip::tcp::endpoint peer{};

    void accept() {
        acceptor.async_accept(peer, [this](asio::error_code failed, asio::ip::tcp::socket) {
            ENSURE(not failed);
            if (--left != 0) accept();
        });
    }
};

}  // namespace

void accept_asio(run& repeat, unsigned burst) {
    accept_load load(burst, repeat.operations());
    repeat.did(load.connections());
    asio::io_context context(1);  // one thread: it can omit its locks
    asio_server server{
        .acceptor = asio::ip::tcp::acceptor(context, asio::ip::tcp::v4(), load.release_listener()),
        .left = load.connections()};
    load.begin();
    repeat.measure([&] {
        server.accept();
        context.run();
    });
}

void accept_multishot(run& repeat, unsigned burst, bool asks) {
    accept_load load(burst, repeat.operations());
    repeat.did(load.connections());
    const int listener = load.release_listener();
    io_uring ring{};
    io_uring_params parameters{};
    parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
    parameters.cq_entries = 4096;
    if (io_uring_queue_init_params(64, &ring, &parameters) < 0) {
        (void)close(listener);
        return repeat.skip("io_uring is not permitted");
    }
    ENSURE(io_uring_register_ring_fd(&ring) == 1);
    load.begin();
    repeat.measure([&] {
        bool is_armed = false;
        for (std::uint64_t left = load.connections(); left != 0;) {
            if (not is_armed) {
                io_uring_prep_multishot_accept(io_uring_get_sqe(&ring), listener, nullptr, nullptr,
                                               SOCK_CLOEXEC);
                is_armed = true;
            }
            ENSURE(io_uring_submit_and_wait(&ring, 1) >= 0);
            io_uring_cqe* entry = nullptr;
            unsigned head = 0;
            unsigned seen = 0;
            io_uring_for_each_cqe(&ring, head, entry) {
                ++seen;
                is_armed = (entry->flags & IORING_CQE_F_MORE) != 0;
                if (entry->res < 0) continue;
                sockaddr_storage peer;
                socklen_t length = sizeof peer;
                // Fails if the client has already closed the connection.
                if (asks) (void)getpeername(entry->res, reinterpret_cast<sockaddr*>(&peer), &length);
                (void)close(entry->res);
                --left;
            }
            io_uring_cq_advance(&ring, seen);
        }
    });
    io_uring_queue_exit(&ring);
    (void)close(listener);
}

}  // namespace sluice::bench::peers
