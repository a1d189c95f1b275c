// Measures calls that cross from a program into libsluice.so. One source, linked with the archives
// and with the library; bench/abi_boundary.py runs the programs in pairs and compares them.
//
//   abi_boundary SECONDS    prints "WORKLOAD nanoseconds" per operation, in CPU time of this thread

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "bench/io/cached_file.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/sync/range_lock.hpp"

namespace {

using namespace sluice;
using namespace sluice::io;

constexpr std::uint64_t operations_per_round = 2'000;

double nanoseconds_of_this_thread() {
    timespec now{};
    ENSURE(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Repeats rounds for the given time, and prints the cost of one operation in the fastest of them:
/// other work on the machine makes a round slower, never faster.
template <class Round>
void measure(const char* workload, double seconds, Round&& round) {
    double fastest = 1e18;
    const double start = nanoseconds_of_this_thread();
    for (double before = start; before < start + seconds * 1e9;) {
        round(operations_per_round);
        const double after = nanoseconds_of_this_thread();
        fastest = std::min(fastest, after - before);
        before = after;
    }
    std::printf("%s %.2f\n", workload, fastest / operations_per_round);
}

struct whole_read {
    void set_value(io_result<bytes_type>&& got) noexcept { ENSURE(got.bytes_transferred() != 0); }
    void set_done() noexcept {}
};

task<void> read_by_coroutine(file_handle& file, std::uint64_t left) {
    std::array<std::byte, 4096> block;
    for (; left != 0; --left) {
        const auto got = co_await co_read(file, io_request<bytes_type>{block, 0});
        ENSURE(got.bytes_transferred() == block.size());
    }
}

void measure_files(double seconds) {
    const auto multiplexer = best_available().value();
    file_handle file = bench::make_cached_file(1 << 20);
    std::array<std::byte, 4096> block;
    measure("cached_read.blocking", seconds, [&](std::uint64_t left) {
        for (; left != 0; --left)
            ENSURE(file.read(io_request<bytes_type>{block, 0}).bytes_transferred() == block.size());
    });
    file.set_multiplexer(multiplexer.get()).value();
    measure("cached_read.coroutine", seconds,
            [&](std::uint64_t left) { sync_wait(*multiplexer, read_by_coroutine(file, left)); });
}

// One byte in each direction through one pipe.
void measure_pipes(double seconds) {
    const auto multiplexer = best_available().value();
    auto pipe = pipe_handle::anonymous().value();
    std::array<std::byte, 1> byte{};
    measure("pipe_ping.blocking", seconds, [&](std::uint64_t left) {
        for (; left != 0; --left) {
            ENSURE(pipe.writer.write(io_request<const_bytes_type>{byte, 0}).bytes_transferred() == 1);
            ENSURE(pipe.reader.read(io_request<bytes_type>{byte, 0}).bytes_transferred() == 1);
        }
    });
    pipe.reader.set_multiplexer(multiplexer.get()).value();
    auto state = connect(async_read(pipe.reader, io_request<bytes_type>{byte, 0}), whole_read{});
    measure("pipe_ping.poll", seconds, [&](std::uint64_t left) {
        for (; left != 0; --left) {
            ENSURE(pipe.writer.write(io_request<const_bytes_type>{byte, 0}).bytes_transferred() == 1);
            state.start();
            while (not state.completed())
                state.poll();
        }
    });
    measure("pipe_ping.complete_io", seconds, [&](std::uint64_t left) {
        for (; left != 0; --left) {
            ENSURE(pipe.writer.write(io_request<const_bytes_type>{byte, 0}).bytes_transferred() == 1);
            state.start();
            while (not state.completed())
                (void)multiplexer->complete_io();
        }
    });
}

struct counted_item final : posted_item {
    std::uint64_t invoked = 0;
    void invoke() noexcept override { ++invoked; }
};

// No system call: only the calls.
void measure_memory(double seconds) {
    const auto multiplexer = best_available().value();
    counted_item item;
    measure("post_and_invoke", seconds, [&](std::uint64_t left) {
        for (; left != 0; --left) {
            multiplexer->post(item);
            (void)multiplexer->invoke_posted_items();
        }
    });
    ENSURE(item.invoked != 0);
    sync::range_lock lock;
    measure("range_lock.alone", seconds, [&](std::uint64_t left) {
        for (; left != 0; --left) {
            const auto guard = lock.try_lock({.where = sync::byte_range::from(left)});
            ENSURE(static_cast<bool>(guard));
        }
    });
}

}  // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 0.2;
    measure_files(seconds);
    measure_pipes(seconds);
    measure_memory(seconds);
}
