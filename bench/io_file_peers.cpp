#include "bench/io_file_peers.hpp"

#include <liburing.h>
#include <sys/uio.h>
#include <uv.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "sluice/base/ensure.hpp"

namespace sluice::bench::peers {

// By hand, as fast as the ring goes: single issuer, deferred task work, registered file and buffers.
void uring_reads(run& repeat, int file, unsigned in_flight) {
    io_uring ring{};
    if (io_uring_queue_init(64, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) < 0) {
        repeat.skip("io_uring is refused here");
        return;
    }
    const std::unique_ptr<void, decltype(&std::free)> memory(
        std::aligned_alloc(random_reads::bytes, std::size_t{in_flight} * random_reads::bytes), &std::free);
    const iovec all{.iov_base = memory.get(), .iov_len = std::size_t{in_flight} * random_reads::bytes};
    ENSURE(io_uring_register_files(&ring, &file, 1) == 0 and io_uring_register_ring_fd(&ring) == 1);
    ENSURE(io_uring_register_buffers(&ring, &all, 1) == 0);
    random_reads next;
    const auto queue = [&](std::uint64_t index) {
        io_uring_sqe* const entry = io_uring_get_sqe(&ring);
        char* const block = static_cast<char*>(memory.get()) + index * random_reads::bytes;
        io_uring_prep_read_fixed(entry, 0, block, random_reads::bytes, next.offset(), 0);
        entry->flags |= IOSQE_FIXED_FILE;
        entry->user_data = index;
    };
    repeat.measure([&] {
        std::uint64_t unqueued = repeat.operations();
        for (unsigned i = 0; i < in_flight; ++i, --unqueued)
            queue(i);
        for (std::uint64_t incomplete = repeat.operations(); incomplete != 0;) {
            ENSURE(io_uring_submit_and_wait(&ring, 1) >= 0);
            io_uring_cqe* entry = nullptr;
            unsigned head = 0;
            unsigned seen = 0;
            io_uring_for_each_cqe(&ring, head, entry) {
                ENSURE(entry->res == random_reads::bytes);
                ++seen;
                if (unqueued == 0) continue;
                --unqueued;
                queue(entry->user_data);
            }
            io_uring_cq_advance(&ring, seen);
            incomplete -= seen;
        }
    });
    io_uring_queue_exit(&ring);
}

namespace {

struct uv_reader {
    uv_loop_t loop;
    uv_file file;
    std::uint64_t unqueued;
    random_reads next{};
};

struct uv_read {
    uv_fs_t request{};
    uv_reader* reader = nullptr;
    std::array<char, random_reads::bytes> block;

    void queue() {
        uv_buf_t piece = uv_buf_init(block.data(), random_reads::bytes);
        request.data = this;
        ENSURE(uv_fs_read(&reader->loop, &request, reader->file, &piece, 1,
                          static_cast<std::int64_t>(reader->next.offset()), completed) == 0);
    }
    static void completed(uv_fs_t* request) {
        auto* const self = static_cast<uv_read*>(request->data);
        ENSURE(request->result == random_reads::bytes);
        uv_fs_req_cleanup(request);
        if (self->reader->unqueued == 0) return;
        --self->reader->unqueued;
        self->queue();
    }
};

}  // namespace

void uv_reads(run& repeat, int file, unsigned in_flight) {
    uv_reader reader{.loop = {}, .file = file, .unqueued = repeat.operations() - in_flight};
    ENSURE(uv_loop_init(&reader.loop) == 0);
    std::vector<uv_read> reads(in_flight);
    repeat.measure([&] {
        for (auto& each : reads) {
            each.reader = &reader;
            each.queue();
        }
        (void)uv_run(&reader.loop, UV_RUN_DEFAULT);
    });
    ENSURE(uv_loop_close(&reader.loop) == 0);
}

}  // namespace sluice::bench::peers
