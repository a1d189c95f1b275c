#include "bench/io/io_pipe_peers.hpp"

#include <liburing.h>
#include <uv.h>

#include <array>
#include <asio.hpp>
#include <vector>

#include "bench/io/pipe_source.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench::peers {
namespace {

struct asio_reader {
    asio::posix::stream_descriptor from;
    run* timed;  // null: no time stamps
    std::uint64_t left;
    std::array<char, 1> byte{};
    stopwatch watch{};

    void next() {
        from.async_read_some(asio::buffer(byte), [this](asio::error_code failed, std::size_t bytes) {
            ENSURE(not failed and bytes == 1);
            if (timed != nullptr) timed->record(watch.lap());
            if (--left != 0) next();
        });
    }
};

void read_by_asio(run& repeat, bool timed) {
    pipe_source source;
    asio::io_context context(1);  // one thread: it can omit its locks
    asio_reader reader{asio::posix::stream_descriptor(context, source.release()), timed ? &repeat : nullptr,
                       repeat.operations()};
    repeat.measure([&] {
        reader.next();
        context.run();
    });
}

struct uv_reader {
    uv_loop_t loop;
    uv_pipe_t pipe;
    std::uint64_t left;
    char byte;
};

}  // namespace

void asio_read(run& repeat) {
    read_by_asio(repeat, false);
}

void asio_latency(run& repeat) {
    read_by_asio(repeat, true);
}

// libuv continues to read until it is stopped, so its buffer has only one byte.
void uv_read(run& repeat) {
    pipe_source source;
    uv_reader reader{};
    reader.left = repeat.operations();
    ENSURE(uv_loop_init(&reader.loop) == 0 and uv_pipe_init(&reader.loop, &reader.pipe, 0) == 0);
    ENSURE(uv_pipe_open(&reader.pipe, source.release()) == 0);
    reader.pipe.data = &reader;
    const auto allocate = [](uv_handle_t* handle, std::size_t, uv_buf_t* given) {
        *given = uv_buf_init(&static_cast<uv_reader*>(handle->data)->byte, 1);
    };
    const auto completed = [](uv_stream_t* stream, ssize_t bytes, const uv_buf_t*) {
        if (bytes == 0) return;  // libuv's EAGAIN
        ENSURE(bytes == 1);
        if (--static_cast<uv_reader*>(stream->data)->left == 0) (void)uv_read_stop(stream);
    };
    repeat.measure([&] {
        ENSURE(uv_read_start(reinterpret_cast<uv_stream_t*>(&reader.pipe), allocate, completed) == 0);
        (void)uv_run(&reader.loop, UV_RUN_DEFAULT);
    });
    uv_close(reinterpret_cast<uv_handle_t*>(&reader.pipe), nullptr);
    (void)uv_run(&reader.loop, UV_RUN_DEFAULT);
    ENSURE(uv_loop_close(&reader.loop) == 0);
}

// A hand-written ring, as fast as possible: single issuer, deferred task work, registered file.
void uring_read(run& repeat, unsigned in_flight) {
    pipe_source source;
    io_uring ring{};
    if (const int failed =
            io_uring_queue_init(256, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
        failed < 0) {
        repeat.skip("io_uring is not permitted");
        return;
    }
    const int descriptor = source.reader();
    ENSURE(io_uring_register_files(&ring, &descriptor, 1) == 0 and io_uring_register_ring_fd(&ring) == 1);
    std::vector<char> bytes(in_flight);
    const auto submit_one = [&](unsigned index) {
        io_uring_sqe* const entry = io_uring_get_sqe(&ring);
        io_uring_prep_read(entry, 0, &bytes[index], 1, 0);
        entry->flags |= IOSQE_FIXED_FILE;
        entry->user_data = index;
    };
    repeat.measure([&] {
        std::uint64_t unsubmitted = repeat.operations();
        std::uint64_t incomplete = repeat.operations();
        for (unsigned i = 0; i < in_flight and unsubmitted != 0; ++i, --unsubmitted)
            submit_one(i);
        while (incomplete != 0) {
            ENSURE(io_uring_submit_and_wait(&ring, 1) >= 0);
            io_uring_cqe* entry = nullptr;
            unsigned head = 0;
            unsigned seen = 0;
            io_uring_for_each_cqe(&ring, head, entry) {
                ENSURE(entry->res == 1);
                ++seen;
                if (unsubmitted == 0) continue;
                --unsubmitted;
                submit_one(static_cast<unsigned>(entry->user_data));
            }
            io_uring_cq_advance(&ring, seen);
            incomplete -= seen;
        }
    });
    io_uring_queue_exit(&ring);
}

}  // namespace sluice::bench::peers
