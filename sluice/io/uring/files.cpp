// Files, barriers and words in memory: operations that start() did not complete. They have no
// order.

#include <fcntl.h>

#include <algorithm>
#include <limits>

#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/loop/attempt.hpp"
#include "sluice/io/loop/worker_pool.hpp"
#include "sluice/io/uring/backend.hpp"

namespace sluice::io::uring {

using detail::operation_record;
namespace {

// MAX_RW_COUNT of Linux; also fits the entry's field.
constexpr std::size_t bytes_per_call_max = 0x7fff'f000;

// `backend_word` of an operation that the ring has answered with EAGAIN: a worker of the kernel
// waits for it.
constexpr std::uint64_t wants_worker = 1;

// Appends ignore their offset, which need not be valid then.
std::uint64_t offset_in_file(const operation_record& op) noexcept {
    if (op.kind != operation_kind::read and op.target->native.append_only) return 0;
    return op.offset + op.transferred;
}

constexpr bool is_file_write(operation_kind kind) noexcept {
    return is_transfer(kind) and kind != operation_kind::read;
}

// Returns the rest of a transfer in the form for the ring: the rest of a partly transferred
// segment, or a list of untouched segments, which is the caller's own and so stays in place.
std::span<const buffer> left_of(const operation_record& op, buffer& begun) noexcept {
    std::size_t skip = op.transferred;
    std::uint32_t first = 0;
    while (first < op.piece_count and skip >= op.pieces[first].size()) {
        skip -= op.pieces[first].size();
        ++first;
    }
    ENSURE(skip == 0 or first < op.piece_count, "an operation has moved more than it asked for");
    std::span<const buffer> whole(op.pieces + first, op.piece_count - first);
    if (not whole.empty() and (skip != 0 or whole.size() == 1)) {
        const buffer& piece = whole.front();
        begun = {piece.data() + skip, std::min(piece.size() - skip, bytes_per_call_max)};
        return {&begun, 1};
    }
    return whole.first(std::min(whole.size(), limits::pieces_per_call_max));
}

}  // namespace

// Written directly into an entry of the submission queue, which the next pass submits: a list would
// touch its neighbours there.
void multiplexer::backend_submit(operation_record& op) noexcept {
    const bool is_ours = is_file_write(op.kind) and options_.inline_file_writes;
    io_uring_sqe* const entry = is_ours ? nullptr : ring_.next_if_room();
    if (entry == nullptr) [[unlikely]] {
        files_.push_back(op);
        return;
    }
    const bool is_usual = op.kind <= operation_kind::write and op.piece_count == 1 and op.transferred == 0 and
                          op.backend_word == 0 and op.target->backend_word == is_fixed;
    if (is_usual) [[likely]] {
        queue_piece(*entry, op);
    } else {
        queue_file(*entry, op);
    }
}

// The part of queue_file for a transfer of one segment, not begun, on a file in the table. Each
// field is written once, because with many requests in flight these writes are most of the cost of
// a transfer here.
void multiplexer::queue_piece(io_uring_sqe& entry, operation_record& op) const noexcept {
    static_assert(operation_kind::read < operation_kind::write and IORING_OP_READ + 1 == IORING_OP_WRITE and
                  IORING_OP_READ_FIXED + 1 == IORING_OP_WRITE_FIXED);
    const buffer piece = *op.pieces;
    const int index = registered_index(piece);
    const unsigned base = index >= 0 ? IORING_OP_READ_FIXED : IORING_OP_READ;
    io_uring_sqe filled{};
    filled.opcode = static_cast<std::uint8_t>(base + static_cast<unsigned>(op.kind));
    filled.flags = IOSQE_FIXED_FILE;
    filled.fd = static_cast<int>(op.target->slot);
    filled.off = offset_in_file(op);
    filled.addr = reinterpret_cast<std::uintptr_t>(piece.data());
    filled.len = static_cast<std::uint32_t>(std::min(piece.size(), bytes_per_call_max));
    filled.user_data = address(completion_target::file, &op);
    filled.buf_index = static_cast<std::uint16_t>(std::max(index, 0));
    entry = filled;
    op.at = operation_record::stage::in_flight;
}

bool multiplexer::queue_files() noexcept {
    while (operation_record* const op = files_.front()) {
        if (is_file_write(op->kind) and options_.inline_file_writes) {
            files_.erase(*op);
            perform_blocking(*op);
            finish(*op);
            continue;
        }
        io_uring_sqe* const entry = ring_.next();
        if (entry == nullptr) return false;
        files_.erase(*op);
        queue_file(*entry, *op);
    }
    return true;
}

void multiplexer::queue_file(io_uring_sqe& entry, operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::waiting, "given to the kernel twice");
    if (op.kind == operation_kind::wait_word) [[unlikely]]
        return prepare_word(entry, op);
    const bool moves_bytes = is_transfer(op.kind);
    if (moves_bytes and op.piece_count == 1 and op.transferred == 0) [[likely]] {
        prepare_piece(entry, op, {op.pieces->data(), std::min(op.pieces->size(), bytes_per_call_max)});
    } else if (moves_bytes) {
        prepare_file(entry, op);
    } else {
        prepare_barrier(entry, op);
    }
    name_file(entry, *op.target);
    if (op.backend_word == wants_worker) [[unlikely]]
        entry.flags |= IOSQE_ASYNC;
    entry.user_data = address(completion_target::file, &op);
    op.at = operation_record::stage::in_flight;
}

// For all processes that share the word's memory, so not the private kind.
void multiplexer::prepare_word(io_uring_sqe& entry, operation_record& op) noexcept {
    constexpr std::uint64_t any_waker = 0xffff'ffff;
    io_uring_prep_rw(op_futex_wait, &entry, futex_of_32_bits, op.argument, 0, op.offset);
    entry.addr3 = any_waker;
    entry.user_data = address(completion_target::file, &op);
    op.at = operation_record::stage::in_flight;
}

void multiplexer::on_word(operation_record& op, int outcome) noexcept {
    ENSURE(op.at == operation_record::stage::in_flight, "a completion of what the kernel does not have");
    if (op.queue_link.is_linked()) cancelled_files_.erase(op);
    op.at = operation_record::stage::waiting;
    // EAGAIN: the word had another value. A spurious wake-up is harmless, because every waiter
    // checks the word. ECANCELED without a request: the thread that submitted it has ended.
    const bool is_news = outcome == 0 or outcome == -EAGAIN or outcome == -EINTR or
                         (outcome == -ECANCELED and op.cancel_code == 0);
    if (not is_news) op.error_code = -outcome;
    finish(op);
}

void multiplexer::prepare_barrier(io_uring_sqe& entry, const operation_record& op) noexcept {
    ENSURE(op.kind == operation_kind::barrier, "neither a transfer nor a barrier");
    const int descriptor = op.target->native.descriptor;
    const std::size_t bytes = requested_bytes(op);
    // 0, for all from the offset on, where the entry's field cannot hold the length.
    const unsigned length = bytes > std::numeric_limits<unsigned>::max() ? 0 : static_cast<unsigned>(bytes);
    switch (op.durability) {
        case barrier_kind::nowait_data_only:
        case barrier_kind::nowait_all:
            io_uring_prep_sync_file_range(&entry, descriptor, length, op.offset, SYNC_FILE_RANGE_WRITE);
            break;
        case barrier_kind::wait_data_only:
            io_uring_prep_fsync(&entry, descriptor, IORING_FSYNC_DATASYNC);
            break;
        case barrier_kind::wait_all:
            io_uring_prep_fsync(&entry, descriptor, 0);
            break;
    }
}

// Returns the index of the registered buffer that contains all of `piece`; -1 for none.
int multiplexer::registered_index(buffer piece) const noexcept {
    for (unsigned i = 0; i != arenas_end_; ++i) {
        const auto arena = arenas_[i];
        // For an address before the arena, this wraps to a value larger than any size.
        const auto at =
            reinterpret_cast<std::uintptr_t>(piece.data()) - reinterpret_cast<std::uintptr_t>(arena.data());
        if (at <= arena.size() and piece.size() <= arena.size() - at) return static_cast<int>(i);
    }
    return -1;
}

void multiplexer::prepare_piece(io_uring_sqe& entry, const operation_record& op, buffer piece) noexcept {
    ENSURE(piece.size() <= bytes_per_call_max, "longer than the field of an entry");
    const int index = registered_index(piece);
    const bool is_fixed_memory = index >= 0;
    const int read = is_fixed_memory ? IORING_OP_READ_FIXED : IORING_OP_READ;
    const int write = is_fixed_memory ? IORING_OP_WRITE_FIXED : IORING_OP_WRITE;
    io_uring_prep_rw(op.kind == operation_kind::read ? read : write, &entry, op.target->native.descriptor,
                     piece.data(), static_cast<unsigned>(piece.size()), offset_in_file(op));
    if (is_fixed_memory) entry.buf_index = static_cast<std::uint16_t>(index);
}

void multiplexer::prepare_file(io_uring_sqe& entry, const operation_record& op) noexcept {
    buffer begun;
    const std::span<const buffer> left = left_of(op, begun);
    if (left.size() == 1) {
        prepare_piece(entry, op, left.front());
        return;
    }
    const auto* const list = reinterpret_cast<const iovec*>(left.data());
    const auto count = static_cast<unsigned>(left.size());
    const int descriptor = op.target->native.descriptor;
    if (op.kind == operation_kind::read) {
        io_uring_prep_readv(&entry, descriptor, list, count, offset_in_file(op));
    } else {
        io_uring_prep_writev(&entry, descriptor, list, count, offset_in_file(op));
    }
}

void multiplexer::on_part_of_file(operation_record& op, int outcome) noexcept {
    if (op.kind == operation_kind::wait_word) [[unlikely]]
        return on_word(op, outcome);
    ENSURE(op.at == operation_record::stage::in_flight, "a completion of what the kernel does not have");
    if (op.queue_link.is_linked()) cancelled_files_.erase(op);
    op.at = operation_record::stage::waiting;
    bool ended = true;
    if (is_transfer(op.kind))
        outcome = static_cast<int>(checked_outcome(outcome, requested_bytes(op) - op.transferred));
    if (outcome > 0) {
        op.transferred += static_cast<std::size_t>(outcome);
        ended = amount_of(op.kind) == amount::some or op.transferred >= requested_bytes(op);
    } else if (outcome == -ECANCELED and op.cancel_code == 0) {
        ended = false;  // the thread that submitted it has ended
    } else if (outcome == -EFAULT and is_for_threads() and is_transfer(op.kind)) {
        perform_blocking(op);  // the same, or the buffer is bad: a call shows which
    } else if (outcome == -EINTR or outcome == -EAGAIN) {
        ended = false;
        if (outcome == -EAGAIN) op.backend_word = wants_worker;
    } else if (outcome == -ENOMEM and is_transfer(op.kind) and op.cancel_code == 0) {
        // The ring's own memory, or the file system's; a call distinguishes them. Not for a
        // barrier: a second one would lose the error of the first.
        perform_blocking(op);
    } else if (outcome < 0 and op.transferred == 0) {
        // Bytes that have been transferred are reported; a caller that continues meets the error
        // again.
        op.error_code = -outcome;
    }
    if (not ended and op.cancel_code != 0) {
        if (op.transferred == 0) op.error_code = op.cancel_code;
        ended = true;
    }
    if (ended) {
        finish(op);
    } else {
        backend_submit(op);
    }
}

}  // namespace sluice::io::uring
