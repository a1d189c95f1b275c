#include "bench/io/io_latency_peers.hpp"

#include <unistd.h>
#include <uv.h>

#include <array>

#include "bench/io/io_file_peers.hpp"
#include "bench/io/io_pipe_peers.hpp"
#include "bench/io/pipe_source.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench::peers {
namespace {

struct uv_reader {
    uv_loop_t loop{};
    run* timed = nullptr;
    std::uint64_t left = 0;
    stopwatch watch{};

    explicit uv_reader(run& repeat) : timed(&repeat), left(repeat.operations()) {
        ENSURE(uv_loop_init(&loop) == 0);
    }
    // Returns whether there are more to read.
    bool note() {
        timed->record(watch.lap());
        return --left != 0;
    }
};

struct uv_pipe_reader : uv_reader {
    using uv_reader::uv_reader;
    uv_pipe_t pipe{};
    char byte = 0;
};

struct uv_file_reader : uv_reader {
    using uv_reader::uv_reader;
    uv_fs_t request{};
    uv_file file = -1;
    random_reads next{};
    alignas(random_reads::bytes) std::array<char, random_reads::bytes> block{};

    void queue() {
        uv_buf_t piece = uv_buf_init(block.data(), random_reads::bytes);
        request.data = this;
        ENSURE(uv_fs_read(&loop, &request, file, &piece, 1, static_cast<std::int64_t>(next.offset()),
                          completed) == 0);
    }
    static void completed(uv_fs_t* request) {
        auto* const self = static_cast<uv_file_reader*>(request->data);
        ENSURE(request->result == random_reads::bytes);
        uv_fs_req_cleanup(request);
        if (self->note()) self->queue();
    }
};

}  // namespace

// libuv continues to read until it is stopped, so its buffer has only one byte.
void uv_pipe_latency(run& repeat) {
    pipe_source source;
    uv_pipe_reader reader(repeat);
    ENSURE(uv_pipe_init(&reader.loop, &reader.pipe, 0) == 0 and
           uv_pipe_open(&reader.pipe, source.release()) == 0);
    reader.pipe.data = &reader;
    const auto allocate = [](uv_handle_t* handle, std::size_t, uv_buf_t* given) {
        *given = uv_buf_init(&static_cast<uv_pipe_reader*>(handle->data)->byte, 1);
    };
    const auto completed = [](uv_stream_t* stream, ssize_t bytes, const uv_buf_t*) {
        if (bytes == 0) return;  // libuv's EAGAIN
        ENSURE(bytes == 1);
        if (not static_cast<uv_pipe_reader*>(stream->data)->note()) (void)uv_read_stop(stream);
    };
    repeat.measure([&] {
        ENSURE(uv_read_start(reinterpret_cast<uv_stream_t*>(&reader.pipe), allocate, completed) == 0);
        (void)uv_run(&reader.loop, UV_RUN_DEFAULT);
    });
    uv_close(reinterpret_cast<uv_handle_t*>(&reader.pipe), nullptr);
    (void)uv_run(&reader.loop, UV_RUN_DEFAULT);
    ENSURE(uv_loop_close(&reader.loop) == 0);
}

void uv_file_latency(run& repeat, int descriptor) {
    uv_file_reader reader(repeat);
    reader.file = descriptor;
    repeat.measure([&] {
        reader.queue();
        (void)uv_run(&reader.loop, UV_RUN_DEFAULT);
    });
    ENSURE(uv_loop_close(&reader.loop) == 0);
    (void)close(descriptor);
}

}  // namespace sluice::bench::peers
