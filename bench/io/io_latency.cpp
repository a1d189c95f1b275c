// The duration of one read, up to the 99.9999th percentile, in each form. The reads are one byte
// from a pipe that is never empty, 4 KiB from a cached file, and 4 KiB from a block device, past
// the cache.
#include <fcntl.h>

#include <array>
#include <cstdlib>
#include <string>

#include "bench/harness/benchmark.hpp"
#include "bench/io/cached_file.hpp"
#include "bench/io/io_file_peers.hpp"
#include "bench/io/io_latency_peers.hpp"
#include "bench/io/io_pipe_peers.hpp"
#include "bench/io/pipe_source.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;

// The offsets of the reads, and their buffer.
class pipe_bytes {
public:
    pipe_bytes() {
        source_.make_nonblocking();
        handle_ = io_handle(native_handle{.descriptor = source_.release(),
                                          .kind = handle_kind::pipe,
                                          .readable = true,
                                          .nonblocking = true,
                                          .stream = true});
    }
    io_handle& handle() noexcept { return handle_; }
    io_request<bytes_type> next() noexcept { return {.buffers = {&byte_, 1}}; }

private:
    pipe_source source_;
    std::byte byte_{};
    io_handle handle_;
};

// Returns the cached file in the current directory; its blocks are also written to the disk.
file_handle& cached_file() {
    static file_handle file = make_cached_file(random_reads::file_bytes);
    return file;
}

file_handle open_cached() {
    native_handle native = cached_file().native();
    native.descriptor = fcntl(native.descriptor, F_DUPFD_CLOEXEC, 0);
    ENSURE(native.descriptor >= 0);
    return file_handle(native);
}

// Opens the block device of SLUICE_BENCH_DEVICE, at least 64 MiB, which is only read; without one,
// the blocks of the file, read past the cache.
file_handle open_device() {
    const char* const device = std::getenv("SLUICE_BENCH_DEVICE");
    const std::string file = "/proc/self/fd/" + std::to_string(cached_file().descriptor());
    return file_handle::open({}, path_view(device != nullptr ? device : file.c_str()), mode::read,
                             creation::open_existing, caching::only_metadata)
        .value();
}

template <file_handle (*open)()>
class file_blocks {
public:
    io_handle& handle() noexcept { return handle_; }
    io_request<bytes_type> next() noexcept { return {.buffers = block_, .offset = places_.offset()}; }

private:
    file_handle handle_ = open();
    random_reads places_;
    alignas(random_reads::bytes) std::array<std::byte, random_reads::bytes> block_{};
};

// --- the forms

template <class Source>
void by_system_call(run& repeat) {
    pin_to(0);
    Source source;
    const int descriptor = source.handle().descriptor();
    const bool is_pipe = source.handle().kind() == handle_kind::pipe;
    repeat.measure([&] {
        stopwatch watch;
        for (auto left = repeat.operations(); left != 0; --left) {
            const auto [memory, offset] = source.next();
            const ssize_t got =
                is_pipe ? read(descriptor, memory.data(), memory.size())
                        : pread(descriptor, memory.data(), memory.size(), static_cast<off_t>(offset));
            ENSURE(got == static_cast<ssize_t>(memory.size()));
            repeat.record(watch.lap());
        }
    });
}

template <class Source>
void by_blocking_call(run& repeat) {
    pin_to(0);
    Source source;
    repeat.measure([&] {
        stopwatch watch;
        for (auto left = repeat.operations(); left != 0; --left) {
            ENSURE(source.handle().read(source.next()).bytes_transferred() != 0);
            repeat.record(watch.lap());
        }
    });
}

// A source on the best available multiplexer.
template <class Source>
struct attached {
    std::unique_ptr<io_multiplexer> multiplexer = best_available().value();
    Source source;

    attached() {
        pin_to(0);
        source.handle().set_multiplexer(multiplexer.get()).value();
    }
};

struct one_read {
    void set_value(io_result<bytes_type>&& got) noexcept { ENSURE(got.bytes_transferred() != 0); }
    void set_done() noexcept {}
};

// `drive(multiplexer, state)` is called until the read has completed.
template <class Source, class Drive>
void by_driving(run& repeat, Drive drive) {
    attached<Source> on;
    auto state = connect(async_read(on.source.handle(), on.source.next()), one_read{});
    repeat.measure([&] {
        stopwatch watch;
        for (auto left = repeat.operations(); left != 0; --left) {
            state.get_sender().request() = on.source.next();
            state.start();
            while (not state.completed())
                drive(*on.multiplexer, state);
            repeat.record(watch.lap());
        }
    });
}

// Each read's done signal starts the next; run() drives them.
template <class Source>
class chain {
public:
    chain(run& repeat, Source& source)
        : repeat_(repeat),
          source_(source),
          left_(repeat.operations()),
          state_(connect(async_read(source.handle(), source.next()), link{this})) {}

    void start() noexcept { state_.start(); }

private:
    struct link {
        chain* self;
        void set_value(io_result<bytes_type>&& got) noexcept { ENSURE(got.bytes_transferred() != 0); }
        void set_done() noexcept {
            self->repeat_.record(self->watch_.lap());
            if (--self->left_ == 0) return;
            self->state_.get_sender().request() = self->source_.next();
            self->state_.start();
        }
    };

    run& repeat_;
    Source& source_;
    std::uint64_t left_;
    stopwatch watch_;
    io_operation_connection<transfer_sender<bytes_type>, link> state_;
};

template <class Source>
void by_sender(run& repeat) {
    attached<Source> on;
    chain<Source> reads(repeat, on.source);
    repeat.measure([&] {
        reads.start();
        while (on.multiplexer->run().value() > 0) {}
    });
}

template <class Source>
task<void> read_all(run& repeat, Source& source) {
    stopwatch watch;
    for (auto left = repeat.operations(); left != 0; --left) {
        const auto got = co_await co_read(source.handle(), source.next());
        ENSURE(got.bytes_transferred() != 0);
        repeat.record(watch.lap());
    }
}

template <class Source>
void by_coroutine(run& repeat) {
    attached<Source> on;
    repeat.measure([&] { sync_wait(*on.multiplexer, read_all(repeat, on.source)); });
}

template <class Source>
workload& add_forms(benchmark& to, const char* name, std::uint64_t operations) {
    const auto polls = [](io_multiplexer&, auto& state) { (void)state.poll(); };
    const auto completes = [](io_multiplexer& m, auto&) { (void)m.complete_io(); };
    const auto runs = [](io_multiplexer& m, auto&) { (void)m.run(); };
    return to.add({.name = name, .operations = operations, .cpu = cpu_clock::process})
        .subject("limit", by_system_call<Source>)
        .subject("sluice.blocking", by_blocking_call<Source>)
        .subject("sluice.poll", [=](run& r) { by_driving<Source>(r, polls); })
        .subject("sluice.complete_io", [=](run& r) { by_driving<Source>(r, completes); })
        .subject("sluice.run", [=](run& r) { by_driving<Source>(r, runs); })
        .subject("sluice.sender", by_sender<Source>)
        .subject("sluice.coroutine", by_coroutine<Source>);
}

// Two more descriptors for the peers, which close theirs.
int released(file_handle file) {
    return file.release().descriptor;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark latency("io_latency", "How long does one read take, up to the 99.9999th percentile?");
    // Nine repeats have more than 10^6 samples, without which the last percentile is the maximum.
    add_forms<pipe_bytes>(latency, "pipe", 1'200'000)
        .subject("libasio-dev", peers::asio_latency)
        .subject("libuv1-dev", peers::uv_pipe_latency);
    add_forms<file_blocks<open_cached>>(latency, "cached_file", 400'000)
        .subject("libasio-dev", [](run& r) { peers::asio_file_latency(r, released(open_cached())); })
        .subject("libuv1-dev", [](run& r) { peers::uv_file_latency(r, released(open_cached())); });
    add_forms<file_blocks<open_device>>(latency, "device", 120'000)
        .subject("libasio-dev", [](run& r) { peers::asio_file_latency(r, released(open_device())); })
        .subject("libuv1-dev", [](run& r) { peers::uv_file_latency(r, released(open_device())); });
    return latency.main(argc, argv);
}
