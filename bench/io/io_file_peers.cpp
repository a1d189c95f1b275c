#include "bench/io/io_file_peers.hpp"

#include <liburing.h>
#include <sys/uio.h>
#include <uv.h>

#include <array>
#include <vector>

#include "sluice/base/ensure.hpp"

namespace sluice::bench::peers {

uring_reader::uring_reader(int file, std::span<std::byte> memory)
    : memory_(memory), ring_(std::make_unique<io_uring>()) {
    if (io_uring_queue_init(64, ring_.get(), IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) < 0) {
        ring_.reset();
        return;
    }
    const iovec all{.iov_base = memory.data(), .iov_len = memory.size()};
    ENSURE(io_uring_register_files(ring_.get(), &file, 1) == 0 and
           io_uring_register_ring_fd(ring_.get()) == 1);
    ENSURE(io_uring_register_buffers(ring_.get(), &all, 1) == 0);
}

uring_reader::~uring_reader() {
    if (ring_ != nullptr) io_uring_queue_exit(ring_.get());
}

void uring_reader::queue(std::uint64_t block, random_reads& next) {
    io_uring_sqe* const entry = io_uring_get_sqe(ring_.get());
    io_uring_prep_read_fixed(entry, 0, memory_.data() + block * random_reads::bytes, random_reads::bytes,
                             next.offset(), 0);
    entry->flags |= IOSQE_FIXED_FILE;
    entry->user_data = block;
}

void uring_reader::read(std::uint64_t operations, random_reads& next) {
    std::uint64_t unqueued = operations;
    for (std::size_t i = 0; i < memory_.size() / random_reads::bytes; ++i, --unqueued)
        queue(i, next);
    for (std::uint64_t incomplete = operations; incomplete != 0;) {
        ENSURE(io_uring_submit_and_wait(ring_.get(), 1) >= 0);
        io_uring_cqe* entry = nullptr;
        unsigned head = 0;
        unsigned seen = 0;
        io_uring_for_each_cqe(ring_.get(), head, entry) {
            ENSURE(entry->res == random_reads::bytes);
            ++seen;
            if (unqueued == 0) continue;
            --unqueued;
            queue(entry->user_data, next);
        }
        io_uring_cq_advance(ring_.get(), seen);
        incomplete -= seen;
    }
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
