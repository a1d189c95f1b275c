// One byte echoed on many connections. Measures the CPU time of the server's thread alone for an
// echo. TCP itself is most of that. Over loopback it includes the client's kernel work on
// receiving, which runs on the sender's CPU; `recv_and_send` shows how much.

#include <deque>
#include <string>

#include "bench/harness/benchmark.hpp"
#include "bench/io/echo_load.hpp"
#include "bench/io/echo_session.hpp"
#include "bench/io/io_socket_peers.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/receive_stream.hpp"
#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;

// Like echo_session, with one receive that continues, into the buffers of a pool that all
// connections share.
class streaming_session {
public:
    streaming_session(int descriptor, io_multiplexer& multiplexer, receive_pool& pool)
        : socket_(attached(descriptor, multiplexer)),
          stream_(socket_, pool, on_piece{this}),
          write_(connect(async_write(socket_, io_request<const_bytes_type>{{&byte_, 1}}), on_write{})) {}

    void start() noexcept { stream_.start(); }

private:
    static socket_handle attached(int descriptor, io_multiplexer& multiplexer) {
        auto adopted = socket_handle::adopt(descriptor).value();
        adopted.set_multiplexer(&multiplexer).value();
        return adopted;
    }
    struct on_piece {
        streaming_session* self;
        void set_value(result<received_buffer>&& got) noexcept {
            if (not got or got->empty()) return;
            self->byte_ = got->bytes().front();
            self->write_.start();
        }
        void set_done() noexcept {}
    };
    struct on_write {
        void set_value(io_result<const_bytes_type>&& put) noexcept { ENSURE(put.bytes_transferred() == 1); }
        void set_done() noexcept {}
    };

    socket_handle socket_;
    std::byte byte_{};
    receive_stream<on_piece> stream_;
    io_operation_connection<transfer_sender<const_bytes_type>, on_write> write_;
};

void serve_streams(run& repeat, unsigned connections) {
    echo_load load(connections, repeat.operations());
    const auto multiplexer = best_available().value();
    auto pool = receive_pool::make(*multiplexer, {.count = 256, .bytes_each = 64}).value();
    std::deque<streaming_session> sessions;
    for (const int each : load.server_ends())
        sessions.emplace_back(each, *multiplexer, pool);
    load.begin();
    repeat.measure([&] {
        for (auto& each : sessions)
            each.start();
        while (multiplexer->run().value_or(0) > 0) {}
    });
}

using make_multiplexer = std::unique_ptr<io_multiplexer> (*)();

void serve(run& repeat, unsigned connections, make_multiplexer make, bool by_polling) {
    echo_load load(connections, repeat.operations());
    const auto multiplexer = make();
    std::deque<echo_session> sessions;
    for (const int each : load.server_ends())
        sessions.emplace_back(each, *multiplexer);
    load.begin();
    repeat.measure([&] {
        for (auto& each : sessions)
            each.start();
        if (by_polling) {
            while (sessions.front().poll()) {}
        } else {
            while (multiplexer->run().value_or(0) > 0) {}
        }
    });
}

std::unique_ptr<io_multiplexer> make_best() {
    return best_available().value();
}

std::unique_ptr<io_multiplexer> make_epoll() {
    return make_epoll_multiplexer(0).value();
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark echo("io_socket",
                   "What does the echo of one byte cost a server of 1 to 1,024 TCP connections?");
    for (const unsigned connections : {1U, 16U, 256U, 1024U}) {
        const bool alone = connections == 1;
        auto& workload = echo.add({.name = "echo_" + std::to_string(connections),
                                   .metric = alone ? metric::time_per_operation : metric::cpu_per_operation,
                                   .operations = alone ? 50'000U : 400'000U,
                                   .cpu = cpu_clock::thread});
        workload
            .subject("limit",
                     [=](run& r) { alone ? peers::echo_blocking(r) : peers::echo_epoll(r, connections); })
            .subject("sluice.run", [=](run& r) { serve(r, connections, make_best, false); })
            .subject("sluice.receive_stream", [=](run& r) { serve_streams(r, connections); })
            .subject("sluice.epoll.run", [=](run& r) { serve(r, connections, make_epoll, false); });
        if (alone) workload.subject("sluice.poll", [](run& r) { serve(r, 1, make_best, true); });
        if (not alone)
            workload.subject("recv_and_send", [=](run& r) { peers::echo_in_turn(r, connections); });
        workload.subject("libasio-dev", [=](run& r) { peers::echo_asio(r, connections); })
            .subject("libuv1-dev", [=](run& r) { peers::echo_uv(r, connections); })
            .subject("liburing-dev", [=](run& r) { peers::echo_uring(r, connections); });
    }
    // The same in CPU time, most of which is for sleeping and waking up. Three lower bounds of a
    // loop: `limit.epoll` polls for the ready socket before it receives; `limit.epoll_trying` tries
    // to receive first, as an operation of P2052 may inside start(); `limit.io_uring` receives with
    // a ring.
    echo.add({.name = "one_connection",
              .metric = metric::cpu_per_operation,
              .operations = 20'000,
              .cpu = cpu_clock::thread})
        .subject("limit", peers::echo_blocking)
        .subject("limit.epoll", [](run& r) { peers::echo_epoll(r, 1); })
        .subject("limit.epoll_trying", peers::echo_epoll_trying)
        .subject("limit.io_uring", peers::echo_uring_and_send)
        .subject("sluice.run", [](run& r) { serve(r, 1, make_best, false); })
        .subject("sluice.receive_stream", [](run& r) { serve_streams(r, 1); })
        .subject("sluice.epoll.run", [](run& r) { serve(r, 1, make_epoll, false); })
        .subject("libasio-dev", [](run& r) { peers::echo_asio(r, 1); })
        .subject("libuv1-dev", [](run& r) { peers::echo_uv(r, 1); })
        .subject("liburing-dev", [](run& r) { peers::echo_uring(r, 1); });
    return echo.main(argc, argv);
}
