// P2052's central argument: the cost of completing one operation while many others are pending. In
// each round a read is started on a socket, a byte is sent to it, and the read is driven until it
// completes; the others never become ready.

#include <deque>
#include <string>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "bench/io/io_pending_peers.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;
using make_multiplexer = result<std::unique_ptr<io_multiplexer>> (*)();

struct no_news {
    void set_value(io_result<bytes_type>&&) noexcept {}
    void set_done() noexcept {}
};
using read_state = io_operation_connection<transfer_sender<bytes_type>, no_news>;

// A socket with its pending reads.
socket_handle& attach(std::deque<socket_handle>& to, int descriptor, io_multiplexer& multiplexer) {
    socket_handle& fresh = to.emplace_back(socket_handle::adopt(descriptor).value());
    fresh.set_multiplexer(&multiplexer).value();
    return fresh;
}

// `drive(multiplexer, read)` is called until the read has completed.
template <class Drive>
void complete_one_of(run& repeat, std::size_t pending, make_multiplexer make, Drive drive) {
    const pending_reads reads(pending);
    auto made = make();
    if (not made) {
        for (const int each : reads.quiet())
            (void)socket_handle::adopt(each);
        (void)socket_handle::adopt(reads.active());
        repeat.skip(made.error().message());
        return;
    }
    io_multiplexer& multiplexer = **made;
    std::deque<socket_handle> sockets;
    std::byte unread{};
    std::vector<read_state> quiet;
    quiet.reserve(reads.quiet().size() * reads.reads_on_each());
    for (const int each : reads.quiet()) {
        socket_handle& socket = attach(sockets, each, multiplexer);
        for (std::size_t i = 0; i < reads.reads_on_each(); ++i)
            quiet.push_back(connect(async_read(socket, io_request<bytes_type>{{&unread, 1}}), no_news{}));
    }
    for (auto& each : quiet)
        each.start();
    std::byte byte{};
    socket_handle& active = attach(sockets, reads.active(), multiplexer);
    auto read = connect(async_read(active, io_request<bytes_type>{{&byte, 1}}), no_news{});
    // A few passes, after which the kernel has all of them.
    for (int pass = 0; pass < 8; ++pass)
        ENSURE(multiplexer.complete_io().value() <= 0);

    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            read.start();
            reads.send_byte();
            while (not read.completed())
                drive(multiplexer, read);
        }
    });
    repeat.note("pending", static_cast<double>(multiplexer.pending() + 1));
    for (auto& each : quiet)
        each.cancel();
    while (multiplexer.run().value_or(0) > 0) {}
}

void poll_it(io_multiplexer&, read_state& read) {
    (void)read.poll();
}
void complete_all(io_multiplexer& multiplexer, read_state&) {
    (void)multiplexer.complete_io();
}
void run_all(io_multiplexer& multiplexer, read_state&) {
    (void)multiplexer.run();
}

result<std::unique_ptr<io_multiplexer>> make_uring() {
    return make_uring_multiplexer();
}
result<std::unique_ptr<io_multiplexer>> make_epoll() {
    return make_epoll_multiplexer(0);
}

void add_workload(benchmark& to, std::size_t pending) {
    workload& added =
        to.add({.name = "pending_" + std::to_string(pending),
                .series = workload_series{"pending", "operations pending", static_cast<double>(pending)},
                .metric = metric::cpu_per_operation,
                .operations = 50'000,
                .cpu = cpu_clock::thread});
    added.subject("limit", [=](run& r) { peers::pending_by_hand(r, pending, true); })
        .subject("send_and_recv", [=](run& r) { peers::pending_by_hand(r, pending, false); });
    struct back_end {
        std::string name;
        make_multiplexer make;
    };
    for (const auto& [name, make] :
         {back_end{"sluice.uring.", make_uring}, back_end{"sluice.epoll.", make_epoll}}) {
        added.subject(name + "poll", [=](run& r) { complete_one_of(r, pending, make, poll_it); })
            .subject(name + "complete_io", [=](run& r) { complete_one_of(r, pending, make, complete_all); })
            .subject(name + "run", [=](run& r) { complete_one_of(r, pending, make, run_all); });
    }
    added.subject("libasio-dev.poll", [=](run& r) { peers::pending_asio(r, pending, false); })
        .subject("libasio-dev.run_one", [=](run& r) { peers::pending_asio(r, pending, true); });
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark pending("io_pending",
                      "What does completing one operation cost while up to 100,000 are pending?");
    for (const std::size_t count : {1U, 10U, 100U, 1'000U, 10'000U, 100'000U})
        add_workload(pending, count);
    return pending.main(argc, argv);
}
