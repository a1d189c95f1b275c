// Files and barriers: what start() could not do at once. Nothing here keeps an order.

#include <fcntl.h>

#include <algorithm>

#include "sluice/io/attempt.hpp"
#include "sluice/io/uring/backend.hpp"
#include "sluice/io/worker_pool.hpp"

namespace sluice::io::uring {
namespace {

constexpr std::size_t bytes_per_call_max = 0x7fff'f000;  // MAX_RW_COUNT of Linux; also fits the entry's field

// `backend_word` of an operation the ring has answered with EAGAIN: a worker of the kernel's is to wait for
// it.
constexpr std::uint64_t wants_worker = 1;

// What is left to transfer, as the ring takes it: what is left of a piece that has been begun, or a list of
// whole pieces, which is the caller's own and so stays in place.
std::span<const buffer> left_of(const operation& op, buffer& begun) noexcept {
    std::size_t skip = op.transferred;
    std::uint32_t first = 0;
    while (first < op.piece_count and skip >= op.pieces[first].size()) {
        skip -= op.pieces[first].size();
        ++first;
    }
    std::span<const buffer> whole(op.pieces + first, op.piece_count - first);
    if (not whole.empty() and (skip != 0 or whole.size() == 1)) {
        const buffer& piece = whole.front();
        begun = {piece.data() + skip, std::min(piece.size() - skip, bytes_per_call_max)};
        return {&begun, 1};
    }
    return whole.first(std::min(whole.size(), limits::pieces_per_call_max));
}

}  // namespace

bool multiplexer::give_files() noexcept {
    while (operation* const op = files_.front()) {
        if (op->kind == operation_kind::write and options_.inline_file_writes) {
            files_.erase(*op);
            perform_blocking(*op);
            finish(*op);
            continue;
        }
        io_uring_sqe* const entry = ring_.next();
        if (entry == nullptr) return false;
        files_.erase(*op);
        if (op->kind == operation_kind::barrier) {
            prepare_barrier(*entry, *op);
        } else {
            prepare_file(*entry, *op);
        }
        name_file(*entry, *op->target);
        if (op->backend_word == wants_worker) entry->flags |= IOSQE_ASYNC;
        entry->user_data = address(addressee::file, op);
        op->at = operation::stage::in_flight;
    }
    return true;
}

void multiplexer::prepare_barrier(io_uring_sqe& entry, const operation& op) noexcept {
    const int descriptor = op.target->native.descriptor;
    switch (op.durability) {
        case barrier_kind::nowait_data_only:
        case barrier_kind::nowait_all:
            io_uring_prep_sync_file_range(&entry, descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
            break;
        case barrier_kind::wait_data_only:
            io_uring_prep_fsync(&entry, descriptor, IORING_FSYNC_DATASYNC);
            break;
        case barrier_kind::wait_all:
            io_uring_prep_fsync(&entry, descriptor, 0);
            break;
    }
}

// Which registered buffer holds all of `piece`; -1 for none.
int multiplexer::registered_index(buffer piece) const noexcept {
    for (unsigned i = 0; i < arenas_end_; ++i) {
        const auto arena = arenas_[i];
        const auto begin = reinterpret_cast<std::uintptr_t>(arena.data());
        const auto at = reinterpret_cast<std::uintptr_t>(piece.data());
        if (at >= begin and at - begin <= arena.size() and piece.size() <= arena.size() - (at - begin))
            return static_cast<int>(i);
    }
    return -1;
}

void multiplexer::prepare_file(io_uring_sqe& entry, const operation& op) noexcept {
    const int descriptor = op.target->native.descriptor;
    const extent_type offset = op.offset + op.transferred;
    const bool reads = op.kind == operation_kind::read;
    buffer begun;
    const std::span<const buffer> left = left_of(op, begun);
    if (left.size() != 1) {
        const auto* const list = reinterpret_cast<const iovec*>(left.data());
        const auto count = static_cast<unsigned>(left.size());
        if (reads) {
            io_uring_prep_readv(&entry, descriptor, list, count, offset);
        } else {
            io_uring_prep_writev(&entry, descriptor, list, count, offset);
        }
        return;
    }
    const auto bytes = static_cast<unsigned>(begun.size());
    const int index = registered_index(begun);
    if (reads and index >= 0) {
        io_uring_prep_read_fixed(&entry, descriptor, begun.data(), bytes, offset, index);
    } else if (reads) {
        io_uring_prep_read(&entry, descriptor, begun.data(), bytes, offset);
    } else if (index >= 0) {
        io_uring_prep_write_fixed(&entry, descriptor, begun.data(), bytes, offset, index);
    } else {
        io_uring_prep_write(&entry, descriptor, begun.data(), bytes, offset);
    }
}

void multiplexer::on_file(operation& op, int outcome) noexcept {
    if (op.queue_link.is_linked()) cancelled_files_.erase(op);
    op.at = operation::stage::waiting;
    bool ended = true;
    if (outcome > 0) {
        op.transferred += static_cast<std::size_t>(outcome);
        ended = op.transferred >= requested_bytes(op);
    } else if (outcome == -EINTR or outcome == -EAGAIN) {
        ended = false;
        if (outcome == -EAGAIN) op.backend_word = wants_worker;
    } else if (outcome < 0 and op.transferred == 0) {
        // Bytes that have gone are reported; whoever goes on meets the error again.
        op.error_code = -outcome;
    }
    if (not ended and op.cancel_code != 0) {
        if (op.transferred == 0) op.error_code = op.cancel_code;
        ended = true;
    }
    if (ended) {
        finish(op);
    } else {
        files_.push_back(op);
    }
}

}  // namespace sluice::io::uring
