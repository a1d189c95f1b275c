// P2052's benchmark: writers keep a pipe full; a reader reads ONE byte, and its completion starts
// the next read. The result is the overhead of a library over read(2).

#include <unistd.h>

#include <array>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "bench/io/io_pipe_peers.hpp"
#include "bench/io/pipe_source.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;

// The read end as one of our handles, on the best available multiplexer.
struct our_reader {
    std::unique_ptr<io_multiplexer> multiplexer = best_available().value();
    io_handle handle;

    explicit our_reader(pipe_source& from) {
        from.make_nonblocking();
        handle = io_handle(native_handle{.descriptor = from.release(),
                                         .kind = handle_kind::pipe,
                                         .readable = true,
                                         .nonblocking = true,
                                         .stream = true});
        handle.set_multiplexer(multiplexer.get()).value();
    }
};

// Starts the next read from the done signal, while any remain.
struct next_read {
    void* self = nullptr;
    std::uint64_t* unstarted = nullptr;
    initiation how = initiation::automatic;

    void set_value(io_result<bytes_type>&& outcome) noexcept { ENSURE(outcome.bytes_transferred() == 1); }
    void set_done() noexcept;
};
using chained_read = io_operation_connection<transfer_sender<bytes_type>, next_read>;

void next_read::set_done() noexcept {
    if (*unstarted == 0) return;
    --*unstarted;
    static_cast<chained_read*>(self)->start(how);
}

struct one_read {
    void set_value(io_result<bytes_type>&& outcome) noexcept { ENSURE(outcome.bytes_transferred() == 1); }
    void set_done() noexcept {}
};

void raw_read(run& repeat) {
    pipe_source source;
    char byte = 0;
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left)
            ENSURE(read(source.reader(), &byte, 1) == 1);
    });
}

void by_blocking_read(run& repeat) {
    pipe_source source;
    our_reader reader(source);
    std::byte byte{};
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            ENSURE(reader.handle.read(io_request<bytes_type>{{&byte, 1}}).bytes_transferred() == 1);
        }
    });
}

void by_poll(run& repeat) {
    pipe_source source;
    our_reader reader(source);
    std::byte byte{};
    auto state = connect(async_read(reader.handle, io_request<bytes_type>{{&byte, 1}}), one_read{});
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            state.start();
            while (not state.completed())
                state.poll();
        }
    });
}

// `in_flight` reads at a time, driven by `drive(multiplexer)` until all have completed.
template <class Drive>
void by_chain(run& repeat, std::size_t in_flight, initiation how, Drive drive) {
    pipe_source source;
    our_reader reader(source);
    std::vector<std::byte> bytes(in_flight);
    std::vector<chained_read> states;
    std::uint64_t unstarted = repeat.operations() - in_flight;
    states.reserve(in_flight);
    for (auto& byte : bytes) {
        states.push_back(connect(async_read(reader.handle, io_request<bytes_type>{{&byte, 1}}),
                                 next_read{.unstarted = &unstarted, .how = how}));
        states.back().get_receiver().self = &states.back();
    }
    repeat.measure([&] {
        for (auto& each : states)
            each.start(how);
        while (reader.multiplexer->pending() != 0)
            drive(*reader.multiplexer);
    });
}

task<void> read_by_coroutine(io_handle& from, std::uint64_t left) {
    std::byte byte{};
    for (; left != 0; --left) {
        const auto outcome = co_await co_read(from, io_request<bytes_type>{{&byte, 1}});
        ENSURE(outcome.bytes_transferred() == 1);
    }
}

void by_coroutine(run& repeat) {
    pipe_source source;
    our_reader reader(source);
    repeat.measure(
        [&] { sync_wait(*reader.multiplexer, read_by_coroutine(reader.handle, repeat.operations())); });
}

// The same as by_poll and as raw_read, with a time stamp per read.
void latency_of_raw_read(run& repeat) {
    pipe_source source;
    char byte = 0;
    repeat.measure([&] {
        stopwatch watch;
        for (auto left = repeat.operations(); left != 0; --left) {
            ENSURE(read(source.reader(), &byte, 1) == 1);
            repeat.record(watch.lap());
        }
    });
}

void latency_by_poll(run& repeat) {
    pipe_source source;
    our_reader reader(source);
    std::byte byte{};
    auto state = connect(async_read(reader.handle, io_request<bytes_type>{{&byte, 1}}), one_read{});
    repeat.measure([&] {
        stopwatch watch;
        for (auto left = repeat.operations(); left != 0; --left) {
            state.start();
            while (not state.completed())
                state.poll();
            repeat.record(watch.lap());
        }
    });
}

task<void> time_by_coroutine(io_handle& from, run& repeat) {
    std::byte byte{};
    stopwatch watch;
    for (auto left = repeat.operations(); left != 0; --left) {
        const auto outcome = co_await co_read(from, io_request<bytes_type>{{&byte, 1}});
        ENSURE(outcome.bytes_transferred() == 1);
        repeat.record(watch.lap());
    }
}

void latency_by_coroutine(run& repeat) {
    pipe_source source;
    our_reader reader(source);
    repeat.measure([&] { sync_wait(*reader.multiplexer, time_by_coroutine(reader.handle, repeat)); });
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    using sluice::io::initiation;
    benchmark pipe("io_pipe", "What does a library add to reading one byte from a pipe that is never empty?");

    const auto complete_io = [](sluice::io::io_multiplexer& m) { m.complete_io(); };
    const auto run_it = [](sluice::io::io_multiplexer& m) { m.run(); };

    pipe.add({.name = "one_in_flight", .operations = 2'000'000, .cpu = cpu_clock::thread})
        .subject("limit", raw_read)
        .subject("sluice.blocking", by_blocking_read)
        .subject("sluice.poll", by_poll)
        .subject("sluice.complete_io", [=](run& r) { by_chain(r, 1, initiation::automatic, complete_io); })
        .subject("sluice.run", [=](run& r) { by_chain(r, 1, initiation::automatic, run_it); })
        .subject("sluice.coroutine", by_coroutine)
        .subject("libasio-dev", peers::asio_read)
        .subject("libuv1-dev", peers::uv_read)
        .subject("liburing-dev", [](run& r) { peers::uring_read(r, 1); });

    pipe.add({.name = "32_in_flight", .operations = 2'000'000, .cpu = cpu_clock::thread})
        .subject("limit", raw_read)
        .subject("sluice.complete_io", [=](run& r) { by_chain(r, 32, initiation::batched, complete_io); })
        .subject("liburing-dev", [](run& r) { peers::uring_read(r, 32); });

    // More than ten times nine million samples: the last percentile needs 10^8 of them.
    pipe.add({.name = "latency", .operations = 12'000'000, .cpu = cpu_clock::thread})
        .subject("limit", latency_of_raw_read)
        .subject("sluice.poll", latency_by_poll)
        .subject("sluice.coroutine", latency_by_coroutine)
        .subject("libasio-dev", peers::asio_latency);
    return pipe.main(argc, argv);
}
