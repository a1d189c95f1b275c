// The cost of each connection that a server accepts, identifies the peer of, and closes. Most of it
// is the kernel's: creating the socket, and resetting the connection.

#include <memory>
#include <string>

#include "bench/harness/benchmark.hpp"
#include "bench/io/accept_load.hpp"
#include "bench/io/io_accept_peers.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/stream/accept_stream.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;

struct closer {
    std::uint64_t* left;
    void set_value(result<accepted>&& outcome) noexcept {
        if (outcome) --*left;  // the connection closes with it
    }
    void set_done() noexcept {}
};

using make_multiplexer = std::unique_ptr<io_multiplexer> (*)();

void serve(run& repeat, unsigned burst, make_multiplexer make) {
    accept_load load(burst, repeat.operations());
    repeat.did(load.connections());
    const auto multiplexer = make();
    listening_socket_handle listener({.descriptor = load.release_listener(),
                                      .kind = handle_kind::socket,
                                      .nonblocking = true,
                                      .stream = true});
    listener.set_multiplexer(multiplexer.get()).value();
    std::uint64_t left = load.connections();
    accept_stream stream(listener, closer{&left});
    load.begin();
    repeat.measure([&] {
        stream.start();
        while (left != 0)
            (void)multiplexer->run();
    });
    stream.cancel();
    while (multiplexer->run().value_or(0) > 0) {}
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
    benchmark accepting("io_accept", "What does it cost to accept a connection, alone or in a burst?");
    for (const unsigned burst : {1U, 16U, 256U}) {
        accepting
            .add({.name = "accept_" + std::to_string(burst),
                  .metric = metric::cpu_per_operation,
                  .operations = 100'000,
                  .cpu = cpu_clock::thread})
            .subject("limit", [=](run& r) { peers::accept_calls(r, burst); })
            .subject("sluice.accept_stream", [=](run& r) { serve(r, burst, make_best); })
            .subject("sluice.epoll.accept_stream", [=](run& r) { serve(r, burst, make_epoll); })
            .subject("libasio-dev", [=](run& r) { peers::accept_asio(r, burst); })
            .subject("liburing-dev", [=](run& r) { peers::accept_multishot(r, burst, true); })
            .subject("liburing-dev.anonymous", [=](run& r) { peers::accept_multishot(r, burst, false); });
    }
    return accepting.main(argc, argv);
}
