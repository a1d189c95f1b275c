// One byte echoed on many connections by a server with several threads, and a client on its own
// thread. Measures the CPU time of the server's threads for an echo, and the echoes per second.

#include <pthread.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "bench/io/echo_load.hpp"
#include "bench/io/echo_session.hpp"
#include "bench/io/io_threads_peers.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;

using make_multiplexer = std::unique_ptr<io_multiplexer> (*)(run_by);

void serve(run& repeat, unsigned connections, unsigned threads, run_by how, make_multiplexer make) {
    echo_load load(connections, repeat.operations());
    const auto multiplexer = make(how);
    std::deque<echo_session> sessions;
    for (const int each : load.server_ends())
        sessions.emplace_back(each, *multiplexer);
    load.begin();
    peers::run_threads(
        repeat, threads,
        [&] {
            for (auto& each : sessions)
                each.start();
        },
        [&] {
            while (multiplexer->run().value_or(0) > 0) {}
        });
}

std::unique_ptr<io_multiplexer> make_ring(run_by how) {
    return make_uring_multiplexer({.threads = how}).value();
}

std::unique_ptr<io_multiplexer> make_epoll(run_by how) {
    return make_epoll_multiplexer(1, how).value();
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    using sluice::io::run_by;
    benchmark echo("io_threads",
                   "What does the echo of one byte cost a server with 1 to 8 threads, and what is its rate?");
    constexpr unsigned connections = 64;
    for (const unsigned threads : {1U, 2U, 4U, 8U}) {
        for (const metric by : {metric::cpu_per_operation, metric::operations_per_second}) {
            auto& workload = echo.add(
                {.name = (by == metric::cpu_per_operation ? "cpu_" : "rate_") + std::to_string(threads),
                 .metric = by,
                 .operations = 100'000U});
            workload.subject("limit", [=](run& r) { peers::echo_epoll_threads(r, connections, threads); })
                .subject("sluice.epoll",
                         [=](run& r) { serve(r, connections, threads, run_by::several, make_epoll); })
                .subject("sluice.io_uring",
                         [=](run& r) { serve(r, connections, threads, run_by::several, make_ring); })
                .subject("libasio-dev", [=](run& r) { peers::echo_asio_threads(r, connections, threads); });
            if (threads == 1) {
                workload.subject("sluice.one_thread",
                                 [=](run& r) { serve(r, connections, 1, run_by::one, make_epoll); });
            }
        }
    }
    return echo.main(argc, argv);
}
