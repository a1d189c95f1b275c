// Random reads of 4 KiB from a cached file: the overhead of a library over pread(2) for one at a
// time, and its savings for 32 at a time.

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "bench/io/cached_file.hpp"
#include "bench/io/io_file_peers.hpp"
#include "bench/io/pipe_source.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/file/mapped_file_handle.hpp"
#include "sluice/io/loop/registered_buffer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::io;

// Returns the file, created once and removed with the program: in the current directory, which
// should be on ext4 or XFS.
file_handle& cached_file() {
    static file_handle file = [] {
        auto made = make_cached_file(random_reads::file_bytes);
        pin_to(0);
        return made;
    }();
    return file;
}

// Returns a separate handle on the same file, so that each subject can attach it anywhere.
file_handle another_handle() {
    native_handle native = cached_file().native();
    native.descriptor = fcntl(native.descriptor, F_DUPFD_CLOEXEC, 0);
    ENSURE(native.descriptor >= 0);
    return file_handle(native);
}

void by_pread(run& repeat) {
    const int file = cached_file().descriptor();
    random_reads next;
    std::array<std::byte, random_reads::bytes> block;
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            ENSURE(pread(file, block.data(), block.size(), static_cast<off_t>(next.offset())) ==
                   random_reads::bytes);
        }
    });
}

// The cost of asking the kernel not to wait: start() must do this to keep its contract.
void by_preadv2_nowait(run& repeat) {
    const int file = cached_file().descriptor();
    random_reads next;
    std::array<std::byte, random_reads::bytes> block;
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            const iovec piece{.iov_base = block.data(), .iov_len = block.size()};
            const auto at = static_cast<off_t>(next.offset());
            // The kernel may have reclaimed the page, on machines that reclaim seldom-used ones.
            if (preadv2(file, &piece, 1, at, RWF_NOWAIT) != random_reads::bytes)
                ENSURE(pread(file, block.data(), block.size(), at) == random_reads::bytes);
        }
    });
}

void by_blocking_read(run& repeat) {
    file_handle file = another_handle();
    random_reads next;
    std::array<std::byte, random_reads::bytes> block;
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            const auto got = file.read(io_request<bytes_type>{block, next.offset()});
            ENSURE(got.bytes_transferred() == random_reads::bytes);
        }
    });
}

// Reads the same bytes from a map: the only cost is the copy into the caller's block.
void by_mapped_read(run& repeat) {
    auto file = mapped_file_handle::map(another_handle()).value();
    random_reads next;
    std::array<std::byte, random_reads::bytes> block;
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            const auto got = file.read(io_request<bytes_type>{block, next.offset()});
            ENSURE(got.bytes_transferred() == random_reads::bytes);
            std::memcpy(block.data(), (*got).data(), block.size());
            asm volatile("" : : "r"(block.data()) : "memory");  // keeps the copy
        }
    });
}

struct whole_read {
    void set_value(io_result<bytes_type>&& got) noexcept {
        ENSURE(got.bytes_transferred() == random_reads::bytes);
    }
    void set_done() noexcept {}
};

void by_poll(run& repeat, bool assume_in_memory) {
    const auto multiplexer = best_available().value();
    file_handle file = another_handle();
    file.assume_in_memory(assume_in_memory);
    file.set_multiplexer(multiplexer.get()).value();
    random_reads next;
    std::array<std::byte, random_reads::bytes> block;
    auto state = connect(async_read(file, io_request<bytes_type>{block}), whole_read{});
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left) {
            state.get_sender().request().offset = next.offset();
            state.start();
            while (not state.completed())
                state.poll();
        }
    });
}

task<void> read_by_coroutine(file_handle& file, std::uint64_t left) {
    random_reads next;
    std::array<std::byte, random_reads::bytes> block;
    for (; left != 0; --left) {
        const auto got = co_await co_read(file, io_request<bytes_type>{block, next.offset()});
        ENSURE(got.bytes_transferred() == random_reads::bytes);
    }
}

void by_coroutine(run& repeat, bool assume_in_memory) {
    const auto multiplexer = best_available().value();
    file_handle file = another_handle();
    file.assume_in_memory(assume_in_memory);
    file.set_multiplexer(multiplexer.get()).value();
    repeat.measure([&] { sync_wait(*multiplexer, read_by_coroutine(file, repeat.operations())); });
}

// Starts the next read, batched with those of its neighbours, while any remain.
struct next_read {
    void* self = nullptr;
    std::uint64_t* unstarted = nullptr;
    random_reads* next = nullptr;

    void set_value(io_result<bytes_type>&& got) noexcept {
        ENSURE(got.bytes_transferred() == random_reads::bytes);
    }
    void set_done() noexcept;
};
using chained_read = io_operation_connection<transfer_sender<bytes_type>, next_read>;

void next_read::set_done() noexcept {
    if (*unstarted == 0) return;
    --*unstarted;
    auto& state = *static_cast<chained_read*>(self);
    state.get_sender().request().offset = next->offset();
    state.start(initiation::batched);
}

void by_ring(run& repeat) {
    alignas(random_reads::bytes) static std::array<std::byte, random_reads::bytes> block;
    peers::uring_reader ring(cached_file().descriptor(), block);
    if (ring.is_refused()) {
        repeat.skip("io_uring is not permitted");
        return;
    }
    random_reads next;
    repeat.measure([&] { ring.read(repeat.operations(), next); });
}

// Thirty-two at a time, into the same blocks for all: the choice of memory matters more than the
// interface.
void in_turns(turns& subjects) {
    constexpr std::size_t in_flight = 32;
    const auto multiplexer = best_available().value();
    registered_buffer memory =
        multiplexer->allocate_registered_buffer(in_flight * random_reads::bytes).value();
    const auto block_of = [&](std::uint64_t read) {
        return memory.bytes().subspan(read % in_flight * random_reads::bytes, random_reads::bytes);
    };
    file_handle file = another_handle();
    file.set_multiplexer(multiplexer.get()).value();
    random_reads next;
    std::uint64_t unstarted = 0;
    std::vector<chained_read> states;
    states.reserve(in_flight);
    for (std::size_t i = 0; i < in_flight; ++i) {
        states.push_back(connect(async_read(file, io_request<bytes_type>{block_of(i)}),
                                 next_read{.unstarted = &unstarted, .next = &next}));
        states.back().get_receiver().self = &states.back();
    }
    peers::uring_reader ring(file.descriptor(), memory.bytes());

    const auto pread_all = [&](std::uint64_t operations) {
        for (; operations != 0; --operations) {
            const auto block = block_of(operations);
            ENSURE(pread(file.descriptor(), block.data(), block.size(), static_cast<off_t>(next.offset())) ==
                   random_reads::bytes);
        }
    };
    const auto ours = [&](std::uint64_t operations) {
        unstarted = operations - in_flight;
        for (auto& each : states) {
            each.get_sender().request().offset = next.offset();
            each.start(initiation::batched);
        }
        while (multiplexer->pending() != 0)
            multiplexer->complete_io();
    };
    const auto by_hand = [&](std::uint64_t operations) { ring.read(operations, next); };
    const turns::turn all[] = {pread_all, ours, by_hand};
    subjects.measure(all);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark file("io_file", "What does a random read of 4 KiB from a cached file cost?");
    const auto descriptor = [] { return cached_file().descriptor(); };

    file.add({.name = "qd_1", .operations = 500'000, .cpu = cpu_clock::thread})
        .subject("limit", by_pread)
        .subject("limit.nowait", by_preadv2_nowait)
        .subject("sluice.blocking", by_blocking_read)
        .subject("sluice.mapped", by_mapped_read)
        .subject("sluice.poll", [](run& r) { by_poll(r, false); })
        .subject("sluice.poll.assume_in_memory", [](run& r) { by_poll(r, true); })
        .subject("sluice.coroutine", [](run& r) { by_coroutine(r, false); })
        .subject("sluice.coroutine.assume_in_memory", [](run& r) { by_coroutine(r, true); })
        .subject("liburing-dev", by_ring);

    if (sluice::io::best_available_reason() == "io_uring") {
        file.add({.name = "qd_32", .operations = 4'096, .cpu = cpu_clock::process})
            .subjects_in_turns({"limit", "sluice.complete_io", "liburing-dev"}, in_turns);
    }

    // Ten times fewer: each goes to another thread and back.
    file.add({.name = "qd_32_threads", .operations = 50'000, .cpu = cpu_clock::process})
        .subject("limit", by_pread)
        .subject("libuv1-dev", [=](run& r) { peers::uv_reads(r, descriptor(), 32); });
    return file.main(argc, argv);
}
