#include "bench/io/io_socket_peers.hpp"

#include <liburing.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <array>
#include <asio.hpp>
#include <deque>
#include <vector>

#include "bench/io/echo_load.hpp"
#include "bench/io/echo_session_asio.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench::peers {

void echo_blocking(run& repeat) {
    echo_load load(1, repeat.operations());
    const int socket = load.server_ends()[0];
    load.begin();
    repeat.measure([&] {
        char byte = 0;
        while (recv(socket, &byte, 1, 0) == 1)
            ENSURE(send(socket, &byte, 1, MSG_NOSIGNAL) == 1);
    });
    (void)close(socket);
}

void echo_epoll(run& repeat, unsigned connections) {
    echo_load load(connections, repeat.operations());
    const int poller = epoll_create1(EPOLL_CLOEXEC);
    ENSURE(poller >= 0);
    for (const int each : load.server_ends()) {
        epoll_event event{.events = EPOLLIN, .data = {.fd = each}};
        ENSURE(epoll_ctl(poller, EPOLL_CTL_ADD, each, &event) == 0);
    }
    load.begin();
    repeat.measure([&] {
        std::array<epoll_event, 256> events;
        for (unsigned open = connections; open != 0;) {
            const int count = epoll_wait(poller, events.data(), static_cast<int>(events.size()), -1);
            for (int i = 0; i < count; ++i) {
                const int socket = events[static_cast<std::size_t>(i)].data.fd;
                char byte = 0;
                if (recv(socket, &byte, 1, MSG_DONTWAIT) == 1) {
                    ENSURE(send(socket, &byte, 1, MSG_NOSIGNAL) == 1);
                } else {
                    (void)close(socket);  // also removes it from the poller
                    --open;
                }
            }
        }
    });
    (void)close(poller);
}

void echo_epoll_trying(run& repeat) {
    echo_load load(1, repeat.operations());
    const int socket = load.server_ends()[0];
    const int poller = epoll_create1(EPOLL_CLOEXEC);
    ENSURE(poller >= 0);
    epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
    ENSURE(epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event) == 0);
    load.begin();
    repeat.measure([&] {
        char byte = 0;
        for (;;) {
            const ssize_t got = recv(socket, &byte, 1, MSG_DONTWAIT);
            if (got == 0) return;
            if (got == 1)
                ENSURE(send(socket, &byte, 1, MSG_NOSIGNAL) == 1);
            else
                (void)epoll_wait(poller, &event, 1, -1);  // interrupted: tried again
        }
    });
    (void)close(socket);
    (void)close(poller);
}

void echo_in_turn(run& repeat, unsigned connections) {
    echo_load load(connections, repeat.operations());
    load.begin();
    repeat.measure([&] {
        char byte = 0;
        for (;;) {
            for (const int each : load.server_ends()) {
                if (recv(each, &byte, 1, 0) != 1) return;
                ENSURE(send(each, &byte, 1, MSG_NOSIGNAL) == 1);
            }
        }
    });
    for (const int each : load.server_ends())
        (void)close(each);
}

void echo_asio(run& repeat, unsigned connections) {
    echo_load load(connections, repeat.operations());
    asio::io_context context(1);  // one thread: it can omit its locks
    std::deque<asio_session> sessions;
    for (const int each : load.server_ends()) {
        sessions.push_back({asio::ip::tcp::socket(context, asio::ip::tcp::v4(), each)});
    }
    load.begin();
    repeat.measure([&] {
        for (auto& each : sessions)
            each.read();
        context.run();
    });
}

namespace {

struct uv_session {
    uv_tcp_t socket;
    char byte;
};

// libuv may read again before it reports a write, so each write has a separate request, as in its
// guide.
struct uv_echoed {
    uv_write_t request;
    char byte;
};

void uv_echo(uv_stream_t* stream, ssize_t bytes, const uv_buf_t*) {
    auto* const self = static_cast<uv_session*>(stream->data);
    if (bytes == 0) return;  // libuv's EAGAIN
    if (bytes < 0) return uv_close(reinterpret_cast<uv_handle_t*>(&self->socket), nullptr);
    auto* const echoed = new uv_echoed{.request = {}, .byte = self->byte};
    uv_buf_t piece = uv_buf_init(&echoed->byte, 1);
    const auto completed = [](uv_write_t* request, int failed) {
        ENSURE(failed == 0);
        delete reinterpret_cast<uv_echoed*>(request);
    };
    ENSURE(uv_write(&echoed->request, stream, &piece, 1, completed) == 0);
}

}  // namespace

void echo_uv(run& repeat, unsigned connections) {
    echo_load load(connections, repeat.operations());
    uv_loop_t loop;
    ENSURE(uv_loop_init(&loop) == 0);
    std::deque<uv_session> sessions;
    for (const int each : load.server_ends()) {
        auto& fresh = sessions.emplace_back();
        ENSURE(uv_tcp_init(&loop, &fresh.socket) == 0 and uv_tcp_open(&fresh.socket, each) == 0);
        fresh.socket.data = &fresh;
    }
    const auto allocate = [](uv_handle_t* handle, std::size_t, uv_buf_t* given) {
        *given = uv_buf_init(&static_cast<uv_session*>(handle->data)->byte, 1);
    };
    load.begin();
    repeat.measure([&] {
        for (auto& each : sessions) {
            ENSURE(uv_read_start(reinterpret_cast<uv_stream_t*>(&each.socket), allocate, uv_echo) == 0);
        }
        (void)uv_run(&loop, UV_RUN_DEFAULT);
    });
    ENSURE(uv_loop_close(&loop) == 0);
}

// A hand-written ring: single issuer, deferred task work, registered files, one enter per pass.
void echo_uring(run& repeat, unsigned connections) {
    echo_load load(connections, repeat.operations());
    io_uring ring{};
    io_uring_params parameters{};
    parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE;
    parameters.cq_entries = 4096;
    const bool refused = io_uring_queue_init_params(1024, &ring, &parameters) < 0;
    if (refused) repeat.skip("io_uring is not permitted");
    load.begin();
    const auto& ends = load.server_ends();
    if (not refused) {
        ENSURE(io_uring_register_files(&ring, ends.data(), connections) == 0 and
               io_uring_register_ring_fd(&ring) == 1);
        std::vector<char> bytes(connections);
        constexpr std::uint64_t is_write = 1U << 31;
        const auto queue = [&](std::uint64_t index, std::uint64_t write) {
            io_uring_sqe* const entry = io_uring_get_sqe(&ring);
            const int file = static_cast<int>(index);
            if (write != 0) {
                io_uring_prep_send(entry, file, &bytes[index], 1, MSG_NOSIGNAL);
            } else {
                io_uring_prep_recv(entry, file, &bytes[index], 1, 0);
            }
            entry->flags |= IOSQE_FIXED_FILE;
            entry->user_data = index | write;
        };
        repeat.measure([&] {
            for (unsigned i = 0; i < connections; ++i)
                queue(i, 0);
            for (unsigned open = connections; open != 0;) {
                ENSURE(io_uring_submit_and_wait(&ring, 1) >= 0);
                io_uring_cqe* entry = nullptr;
                unsigned head = 0;
                unsigned seen = 0;
                io_uring_for_each_cqe(&ring, head, entry) {
                    ++seen;
                    const bool was_write = (entry->user_data & is_write) != 0;
                    if (not was_write and entry->res != 1) {
                        --open;
                        continue;
                    }
                    queue(entry->user_data & ~is_write, was_write ? 0 : is_write);
                }
                io_uring_cq_advance(&ring, seen);
            }
        });
        io_uring_queue_exit(&ring);
    }
    for (const int each : ends)
        (void)close(each);
}

// The calls of sluice.run, hand-written: the ring receives, and does not try before it waits; a
// call sends.
void echo_uring_and_send(run& repeat) {
    echo_load load(1, repeat.operations());
    const int socket = load.server_ends()[0];
    io_uring ring{};
    io_uring_params parameters{};
    parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    const bool refused = io_uring_queue_init_params(1024, &ring, &parameters) < 0;
    if (refused) repeat.skip("io_uring is not permitted");
    load.begin();
    if (not refused) {
        ENSURE(io_uring_register_files(&ring, &socket, 1) == 0 and io_uring_register_ring_fd(&ring) == 1);
        char byte = 0;
        repeat.measure([&] {
            for (int received = 1; received == 1;) {
                io_uring_sqe* const entry = io_uring_get_sqe(&ring);
                io_uring_prep_recv(entry, 0, &byte, 1, 0);
                entry->ioprio |= IORING_RECVSEND_POLL_FIRST;
                entry->flags |= IOSQE_FIXED_FILE;
                io_uring_cqe* completion = nullptr;
                while (io_uring_peek_cqe(&ring, &completion) != 0)
                    (void)io_uring_submit_and_wait(&ring, 1);  // interrupted: waited again
                received = completion->res;
                io_uring_cq_advance(&ring, 1);
                if (received == 1) ENSURE(send(socket, &byte, 1, MSG_NOSIGNAL) == 1);
            }
        });
        io_uring_queue_exit(&ring);
    }
    (void)close(socket);
}

}  // namespace sluice::bench::peers
