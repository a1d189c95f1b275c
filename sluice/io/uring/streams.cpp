// Pipes and sockets: operations that start() did not complete.

#include <poll.h>

#include <algorithm>

#include "sluice/io/loop/attempt.hpp"
#include "sluice/io/uring/backend.hpp"

namespace sluice::io::uring {

using detail::operation_record;
namespace {

// MAX_RW_COUNT of Linux; also fits the entry's field.
constexpr std::size_t bytes_per_call_max = 0x7fff'f000;

// Reads and writes of sockets are submitted to the ring unchanged. All other operations wait for
// readiness and are then done by a call: our pipes are O_NONBLOCK, for which the ring would return
// EAGAIN.
bool is_native(const registration::half& half, const operation_record& op) noexcept {
    return half.owner->native.kind == handle_kind::socket and is_transfer(op.kind);
}

int send_flags(const registration::half& half) noexcept {
    if (half.which == direction::in) return 0;
    // A stream's write continues until complete, in the kernel instead of through us.
    const bool wants_all = half.owner->native.stream and half.queue.front()->kind == operation_kind::write;
    return wants_all ? MSG_NOSIGNAL | MSG_WAITALL : MSG_NOSIGNAL;
}

// Returns the only remaining segment of an operation, or std::nullopt.
std::optional<buffer> only_piece(const operation_record& op) noexcept {
    if (op.piece_count != 1) return std::nullopt;
    const buffer& piece = op.pieces[0];
    ENSURE(op.transferred <= piece.size(), "an operation has moved more than it asked for");
    const std::size_t left = piece.size() - op.transferred;
    return buffer(piece.data() + op.transferred, std::min(left, bytes_per_call_max));
}

bool is_last(const registration::half& half, const operation_record& op) noexcept {
    return half.queue.back() == &op;
}

// Returns whether the last start() on this half found that it would have to wait.
bool was_found_unready(const registration::half& half) noexcept {
    return half.pause != 0 and half.skipped == 0;
}

}  // namespace

// --- giving

bool multiplexer::queue_dirty() noexcept {
    dirty_list now = std::move(dirty_);  // halves marked during this pass wait for the next one
    while (registration::half* const half = now.front()) {
        now.erase(*half);
        if (queue_half(*half)) continue;
        now.push_front(*half);
        now.append(std::move(dirty_));
        dirty_ = std::move(now);
        return false;
    }
    return true;
}

// Returns false if the ring is full.
bool multiplexer::queue_half(registration::half& half) noexcept {
    half_state& state = state_of(half);
    ENSURE(state.half == &half, "a half has the state of another");
    if (state.is_stale) [[unlikely]]
        end_stale_poll(state);
    // Its completion leads to another check. Without memory for the cancellation only a later pass
    // does.
    if (state.is_stale) return not ring_.is_refusing();
    if (half.in_flight != 0) return true;
    // A short path for nearly every half.
    const bool is_usual = half.which == direction::in and not state.polls_only and
                          waits_for_one_piece(half) and is_native(half, *half.queue.front());
    if (is_usual) [[likely]]
        return queue_single(state);
    finish_empty(half);
    while (not half.queue.empty() and has_too_many_pieces(*half.queue.front()))
        fail_front(half, EMSGSIZE);
    if (half.queue.empty()) return true;
    if (half.queue.front()->kind == operation_kind::receive) return queue_receive(state);
    if (half.queue.front()->kind == operation_kind::accept_ahead) return queue_accept(state);
    if (half.queue.front()->kind == operation_kind::accept and finish_accept(state)) return true;
    if (is_native(half, *half.queue.front()) and not state.polls_only) return queue_transfer(state);
    if (state.is_polling) return true;  // it is checked when the poll completes
    if (not state.is_unready and not was_found_unready(half) and not serve_half(half)) return true;
    return queue_poll(state);
}

// A request of no bytes completes at once; in the ring it would wait for bytes of other requests.
void multiplexer::finish_empty(registration::half& half) noexcept {
    if (not half.owner->native.stream) return;
    ENSURE(half.in_flight == 0, "what the kernel has ends with its completion");
    while (operation_record* const front = half.queue.front()) {
        if (not is_native(half, *front) or requested_bytes(*front) != 0) return;
        half.queue.erase(*front);
        finish(*front);
    }
}

bool multiplexer::queue_poll(half_state& state) noexcept {
    ENSURE(not state.is_polling, "one poll of a half at a time");
    io_uring_sqe* const entry = ring_.next();
    if (entry == nullptr) return false;
    registration::half& half = *state.half;
    io_uring_prep_poll_add(entry, half.owner->native.descriptor,
                           half.which == direction::in ? POLLIN : POLLOUT);
    name_file(*entry, *half.owner);
    entry->user_data = address(completion_target::poll, &state);
    state.is_polling = half.is_armed = true;
    state.is_unready = false;
    return true;
}

bool multiplexer::queue_single(half_state& state) noexcept {
    io_uring_sqe* const entry = ring_.next();
    if (entry == nullptr) return false;
    registration::half& half = *state.half;
    operation_record& op = *half.queue.front();
    prepare_single(*entry, state, *only_piece(op));
    finish_entry(*entry, state);
    op.at = operation_record::stage::in_flight;
    return true;
}

void multiplexer::finish_entry(io_uring_sqe& entry, half_state& state) noexcept {
    registration::half& half = *state.half;
    if (state.is_unready or was_found_unready(half)) entry.ioprio |= IORING_RECVSEND_POLL_FIRST;
    state.is_unready = false;
    name_file(entry, *half.owner);
    entry.user_data = state.in_flight_as;
}

bool multiplexer::queue_transfer(half_state& state) noexcept {
    ENSURE(state.half->in_flight == 0, "one transfer of a half at a time");
    io_uring_sqe* const entry = ring_.next();
    if (entry == nullptr) return false;
    registration::half& half = *state.half;
    operation_record& front = *half.queue.front();
    const bool alone = not half.owner->native.stream or is_last(half, front);
    const auto piece = only_piece(front);
    if (wants_zero_copy(front)) {
        prepare_zero_copy(*entry, state, front);
    } else if (piece and alone) {
        prepare_single(*entry, state, *piece);
    } else {
        prepare_gathered(*entry, state);
    }
    finish_entry(*entry, state);
    std::size_t left = half.in_flight;
    for (operation_record& op : half.queue) {
        if (left-- == 0) break;
        op.at = operation_record::stage::in_flight;
    }
    return true;
}

void multiplexer::prepare_single(io_uring_sqe& entry, half_state& state, buffer piece) noexcept {
    registration::half& half = *state.half;
    const int descriptor = half.owner->native.descriptor;
    if (half.which == direction::in) {
        io_uring_prep_recv(&entry, descriptor, piece.data(), piece.size(), send_flags(half));
    } else {
        io_uring_prep_send(&entry, descriptor, piece.data(), piece.size(), send_flags(half));
    }
    state.bytes = piece.size();
    half.in_flight = 1;
    state.in_flight_as = address(completion_target::transfer, &state);
}

void multiplexer::prepare_gathered(io_uring_sqe& entry, half_state& state) noexcept {
    registration::half& half = *state.half;
    const operation_record& front = *half.queue.front();
    state.message = {};
    const bool whole_list = front.transferred == 0 and front.piece_count > limits::gathered_pieces_max and
                            front.piece_count <= limits::pieces_per_call_max;
    if (whole_list) {
        // Longer than a row, but the caller's own list is sufficient.
        state.message.msg_iov = const_cast<iovec*>(reinterpret_cast<const iovec*>(front.pieces));
        state.message.msg_iovlen = front.piece_count;
        state.bytes = requested_bytes(front);
        half.in_flight = 1;
    } else {
        piece_row& row = piece_rows_[ring_.index_of(entry)];
        // A buffer has the layout of an iovec; see request.hpp.
        const gathered all = gather(half, {reinterpret_cast<buffer*>(row.data()), row.size()});
        ENSURE(all.operations != 0 and all.pieces <= row.size(), "a call covers the front, within its row");
        state.message.msg_iov = row.data();
        state.message.msg_iovlen = all.pieces;
        state.bytes = all.bytes;
        half.in_flight = half.owner->native.stream ? all.operations : 1;
    }
    const int descriptor = half.owner->native.descriptor;
    const auto flags = static_cast<unsigned>(send_flags(half));
    if (half.which == direction::in) {
        io_uring_prep_recvmsg(&entry, descriptor, &state.message, flags);
    } else {
        io_uring_prep_sendmsg(&entry, descriptor, &state.message, flags);
    }
    state.in_flight_as = address(completion_target::transfer, &state);
}

// --- completing

void multiplexer::on_transfer(half_state& state, int outcome, unsigned flags) noexcept {
    registration::half& half = *state.half;
    const bool is_usual = outcome > 0 and half.in_flight == 1 and half.which == direction::in and
                          not state.has_cancelled and waits_for_one_piece(half);
    if (is_usual) [[likely]]
        return on_single_read(state, static_cast<std::size_t>(outcome), flags);
    const std::size_t members = std::exchange(half.in_flight, 0);
    ENSURE(members != 0 and not half.queue.empty(), "a completion of nothing");
    std::size_t left = members;
    for (operation_record& op : half.queue) {
        if (left-- == 0) break;
        op.at = operation_record::stage::waiting;
    }
    if (state.cancel_link.is_linked()) cancelled_.erase(state);

    if (outcome >= 0) {
        on_bytes(state, outcome, flags);
    } else if (outcome == -EAGAIN or outcome == -ENOMEM or (outcome == -EFAULT and is_for_threads())) {
        // ENOMEM: the ring's own memory, or the socket's; EFAULT: the thread that submitted it has
        // ended, or the buffer is bad. A call distinguishes them.
        state.polls_only = true;
    } else if (outcome != -EINTR and outcome != -ECANCELED) {
        fail_front(half, -outcome);
    }
    if (std::exchange(state.has_cancelled, false)) withdraw_cancelled(state, members);
    if (not half.queue.empty()) mark_dirty(half);
}

// A short form of on_transfer() for nearly every completion.
void multiplexer::on_single_read(half_state& state, std::size_t bytes, unsigned flags) noexcept {
    ENSURE(bytes <= state.bytes, "the kernel moved more than it was asked to");
    registration::half& half = *state.half;
    half.in_flight = 0;
    operation_record& op = *half.queue.pop_front();
    op.transferred = bytes;
    record_readiness(state, bytes, flags);
    finish(op);
}

void multiplexer::on_bytes(half_state& state, int outcome, unsigned flags) noexcept {
    registration::half& half = *state.half;
    const auto bytes = static_cast<std::size_t>(outcome);
    ENSURE(bytes <= state.bytes, "the kernel moved more than it was asked to");
    operation_queue done;
    const bool all_at_once = not half.owner->native.stream or (bytes == 0 and state.bytes != 0) or
                             half.queue.front()->kind == operation_kind::write_some;
    // A datagram; a write of some; or the end of file, which the next request finds again.
    if (all_at_once) {
        operation_record& front = *half.queue.pop_front();
        front.transferred += bytes;
        done.push_back(front);
    } else {
        distribute(half, bytes, done);
    }
    record_readiness(state, bytes, flags);
    while (operation_record* const op = done.pop_front())
        finish(*op);
}

// Records what a transfer shows for the next one: whether start() should try it, and whether the
// ring should.
void multiplexer::record_readiness(half_state& state, std::size_t bytes, unsigned flags) noexcept {
    registration::half& half = *state.half;
    const bool more = (flags & IORING_CQE_F_SOCK_NONEMPTY) != 0;
    const bool is_known = state.reports_more or more or bytes < state.bytes;
    if (half.which == direction::out or more) {
        half.pause = half.skipped = 0;
        state.is_unready = false;
    } else if (is_known) {
        // Empty for now: a request-response protocol continues only when the peer has answered.
        half.pause = std::max<std::uint8_t>(half.pause, 1);
        half.skipped = 0;
        state.is_unready = true;
    }
}

void multiplexer::fail_front(registration::half& half, int code) noexcept {
    ENSURE(half.in_flight == 0, "what the kernel has ends with its completion");
    operation_record& front = *half.queue.pop_front();
    // Bytes that have been transferred are reported; a caller that continues meets the error again.
    if (front.transferred == 0) front.error_code = code;
    finish(front);
}

// Ends the cancelled operations of a call; its other operations go with the next call.
void multiplexer::withdraw_cancelled(half_state& state, std::size_t members) noexcept {
    registration::half& half = *state.half;
    ENSURE(half.in_flight == 0, "operations are withdrawn once the call for them is over");
    for (;;) {
        operation_record* found = nullptr;
        std::size_t left = members;
        for (operation_record& op : half.queue) {
            if (left-- == 0) break;
            if (op.cancel_code != 0) {
                found = &op;
                break;
            }
        }
        if (found == nullptr) return;
        withdraw(*found, found->cancel_code);
    }
}

void multiplexer::on_poll(half_state& state, int outcome) noexcept {
    registration::half& half = *state.half;
    ENSURE(state.is_polling, "a completion of a poll that is over");
    state.is_polling = half.is_armed = false;
    if (half.queue.empty() or half.in_flight != 0) return;
    if (outcome < 0 and outcome != -ECANCELED) {
        // ENOMEM, EBADF: the waiting operations fail with the error instead of waiting
        // indefinitely.
        while (not half.queue.empty())
            fail_front(half, -outcome);
        return;
    }
    // The poll belonged to another operation if it is for connections that the kernel may be
    // accepting by itself.
    const bool is_ahead = half.queue.front()->kind == operation_kind::accept_ahead;
    if (is_ahead or (is_native(half, *half.queue.front()) and not state.polls_only)) {
        mark_dirty(half);
    } else if (serve_half(half)) {
        state.is_unready = true;
        mark_dirty(half);
    }
}

// --- zero-copy sends

bool multiplexer::wants_zero_copy(const operation_record& op) const noexcept {
    if (op.kind != operation_kind::write or op.piece_count > limits::gathered_pieces_max or
        not has_zero_copy_ or not reports_zero_copy_usage_)
        return false;
    if (op.target->native.kind != handle_kind::socket) return false;
    if (requested_bytes(op) - op.transferred < options_.zero_copy_send_bytes_min) return false;
    // Until one send was really zero-copy, one at a time: a send that is copied after all costs
    // more than an ordinary one.
    const half_state& state = state_of(op.target->side(direction::out));
    return not state.never_zero_copy and (state.was_zero_copy or state.kept_by_kernel == 0);
}

void multiplexer::prepare_zero_copy(io_uring_sqe& entry, half_state& state, operation_record& op) noexcept {
    ENSURE(op.notification_pending == (op.backend_word != 0),
           "a notification is pending while the kernel has memory");
    registration::half& half = *state.half;
    const int descriptor = half.owner->native.descriptor;
    const auto flags = static_cast<unsigned>(send_flags(half));
    if (const auto piece = only_piece(op)) {
        const int index = registered_index(*piece);
        if (index >= 0) {
            io_uring_prep_send_zc_fixed(&entry, descriptor, piece->data(), piece->size(), send_flags(half),
                                        send_zc_report_usage, static_cast<unsigned>(index));
        } else {
            io_uring_prep_send_zc(&entry, descriptor, piece->data(), piece->size(), send_flags(half),
                                  send_zc_report_usage);
        }
        state.bytes = piece->size();
    } else {
        piece_row& row = piece_rows_[ring_.index_of(entry)];
        state.message = {};
        state.message.msg_iov = row.data();
        state.message.msg_iovlen = remaining_pieces(op, {reinterpret_cast<buffer*>(row.data()), row.size()});
        io_uring_prep_sendmsg_zc(&entry, descriptor, &state.message, flags);
        entry.ioprio |= send_zc_report_usage;
        state.bytes = requested_bytes(op) - op.transferred;
    }
    half.in_flight = 1;
    state.in_flight_as = address(completion_target::zero_copy, &op);
}

// Two completions: sent and, unless the first one excludes it, released. `op.backend_word` counts
// the releases that are still to come from the kernel: an operation sent in two parts is released
// twice.
void multiplexer::on_zero_copy(operation_record& op, int outcome, unsigned flags) noexcept {
    half_state& state = state_of(op.target->side(direction::out));
    if ((flags & IORING_CQE_F_NOTIF) != 0) {
        ENSURE(state.kept_by_kernel != 0 and op.backend_word != 0,
               "memory is released more often than it was sent");
        const bool copied = (static_cast<std::uint32_t>(outcome) & notification_usage_copied) != 0;
        --state.kept_by_kernel;
        state.was_zero_copy |= not copied;
        const std::uint8_t copied_sends_max = state.was_zero_copy ? 8 : 2;
        state.copied_in_a_row = copied ? static_cast<std::uint8_t>(state.copied_in_a_row + 1) : 0;
        count(zero_copy_.sends);
        if (copied) count(zero_copy_.copied);
        if (state.copied_in_a_row >= copied_sends_max) state.never_zero_copy = true;
        if (--op.backend_word == 0) finish_notification(op);
        return;
    }
    if ((flags & IORING_CQE_F_MORE) != 0) {
        ++op.backend_word;
        ++state.kept_by_kernel;
        op.notification_pending = true;
    }
    // EINVAL: this kernel cannot report whether it copied, and where it does, that costs more than
    // an ordinary copy. ENOBUFS, ENOMEM: more memory than this user may lock (RLIMIT_MEMLOCK).
    if (outcome == -EINVAL) reports_zero_copy_usage_ = false;
    const bool is_refused =
        outcome == -EINVAL or outcome == -EOPNOTSUPP or outcome == -ENOBUFS or outcome == -ENOMEM;
    if (is_refused) state.never_zero_copy = true;
    on_transfer(state, is_refused ? -EINTR : outcome, flags);
}

}  // namespace sluice::io::uring
