// A datagram service that ends on SIGTERM or SIGINT: it answers each datagram with its bytes, and
// reports truncation. Its client finds it by name. Without arguments both run, and the client's
// answers are checked:
//
//     udp_service                    service and client in one process
//     udp_service PORT               the service alone, until a signal comes

#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "sluice/io/best_available.hpp"
#include "sluice/io/name/name_connect.hpp"
#include "sluice/io/stream/datagram_sender.hpp"
#include "sluice/io/stream/signal_receiver.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"

using namespace sluice::io;
using namespace std::chrono_literals;

namespace {

constexpr signal_set stop_signals{SIGTERM, SIGINT};

task<void> serve(socket_handle& socket) {
    std::array<std::byte, 512> block;
    for (;;) {
        const auto got = co_await co_recvfrom(socket, io_request<bytes_type>{block});
        if (not got) co_return;  // cancelled, or an error of the network
        if (got->is_truncated())
            std::fprintf(stderr, "a datagram of %zu bytes was cut\n", got->message_bytes);
        const auto put = co_await co_sendto(socket, io_request<const_bytes_type>{got->buffers}, got->peer);
        if (not put) std::fprintf(stderr, "%s\n", put.error().message().c_str());
    }
}

// Ends the service when a signal arrives.
task<void> serve_until_stopped(io_multiplexer& loop, socket_handle& socket, signal_receiver& stop) {
    task_group work(loop);
    work.spawn(serve(socket));
    const auto signal = co_await co_wait_signal(stop);
    if (signal) std::printf("signal %d from process %d\n", signal->number, signal->process);
    work.cancel();
    co_await work.join();
}

// Returns whether the service at `name` sends the bytes back.
task<bool> is_answered(io_multiplexer& loop, name_resolver& names, std::uint16_t port) {
    const host_and_port service{"localhost", port};
    const auto addresses = co_await co_resolve(loop, names, service, 5s);
    if (not addresses) co_return false;
    for (const socket_address& to : *addresses) {
        if (to.family() != address_family::ip_v4) continue;  // the service has no other
        auto socket = socket_handle::create(to.family(), socket_type::datagram);
        if (not socket or not socket->set_multiplexer(&loop)) continue;
        constexpr std::string_view question = "is the service there?";
        const std::span<const std::byte> bytes = std::as_bytes(std::span(question));
        const auto sent = co_await co_sendto(*socket, io_request<const_bytes_type>{bytes}, to);
        std::array<std::byte, 512> block;
        if (not sent) continue;
        const auto got = co_await co_recvfrom(*socket, io_request<bytes_type>{block}, 5s);
        if (got and got->buffers.size() == question.size()) co_return true;
    }
    co_return false;
}

task<void> ask_then_stop(io_multiplexer& loop, name_resolver& names, std::uint16_t port, bool& answered) {
    answered = co_await is_answered(loop, names, port);
    (void)::kill(::getpid(), SIGTERM);
}

task<void> run_both(io_multiplexer& loop, name_resolver& names, socket_handle& socket, signal_receiver& stop,
                    bool& answered) {
    task_group work(loop);
    work.spawn(ask_then_stop(loop, names, socket.local_address().value().port(), answered));
    co_await serve_until_stopped(loop, socket, stop);
    co_await work.join();
}

int fail(const sluice::error& why) {
    std::fprintf(stderr, "%s\n", why.message().c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    const blocked_signals blocked(stop_signals);  // before the first thread, which inherits it
    std::uint16_t port = 0;
    if (argc > 1) (void)std::from_chars(argv[1], argv[1] + std::string_view(argv[1]).size(), port);

    const auto loop = this_thread::multiplexer();
    if (not loop) return fail(loop.error());
    const auto source = signal_source::create(stop_signals);
    if (not source) return fail(source.error());
    auto stop = signal_receiver::create(*source);
    if (not stop) return fail(stop.error());
    auto socket = socket_handle::create(address_family::ip_v4, socket_type::datagram);
    if (not socket) return fail(socket.error());
    if (auto bound = socket->bind(socket_address::loopback_v4(port)); not bound) return fail(bound.error());
    if (auto attached = socket->set_multiplexer(*loop); not attached) return fail(attached.error());
    if (auto attached = stop->set_multiplexer(*loop); not attached) return fail(attached.error());

    if (port != 0) {
        sync_wait(**loop, serve_until_stopped(**loop, *socket, *stop));
        return 0;
    }
    name_resolver names;
    bool answered = false;
    sync_wait(**loop, run_both(**loop, names, *socket, *stop, answered));
    return answered ? 0 : 1;
}
