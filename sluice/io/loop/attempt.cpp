#include "sluice/io/loop/attempt.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "sluice/io/call/datagram_call.hpp"
#include "sluice/io/call/limits.hpp"
#include "sluice/io/call/ready_call.hpp"
#include "sluice/io/call/socket_call.hpp"
#include "sluice/io/call/splice_transfer.hpp"
#include "sluice/io/call/transfer_call.hpp"
#include "sluice/io/loop/known_calls.hpp"

namespace sluice::io {

using detail::operation_record;
namespace {

constexpr bool would_block(int code) noexcept {
    return code == EAGAIN;  // EWOULDBLOCK is the same number on Linux
}

bool fail(operation_record& op, int code) noexcept {
    ENSURE(code != 0, "fails without a cause");
    // Bytes that have been transferred are reported; a caller that continues meets the error again.
    if (op.transferred == 0) op.error_code = code;
    return true;
}

ssize_t transfer_some(operation_record& op, direction which) noexcept {
    const native_handle& native = op.target->native;
    if (op.transferred == 0 and op.piece_count <= limits::pieces_per_call_max) {
        return transfer_call(native, which, {op.pieces, op.piece_count}, op.offset, wait::no);
    }
    std::array<buffer, limits::gathered_pieces_max> pieces;
    const std::size_t count = remaining_pieces(op, pieces);
    return transfer_call(native, which, std::span(pieces).first(count), op.offset + op.transferred, wait::no);
}

bool attempt_transfer(operation_record& op, direction which) noexcept {
    if (has_too_many_pieces(op)) return fail(op, EMSGSIZE);
    const bool is_file = op.target->native.kind == handle_kind::file;
    const std::size_t wanted = requested_bytes(op);
    // A transfer of no bytes completes at once, even where the kernel would wait for bytes.
    if (wanted == 0 and op.target->native.stream) return true;
    // A stream's read ends with any bytes; a write continues until it is complete or would wait.
    const bool wants_all = amount_of(op.kind) == amount::all and (is_file or which == direction::out);
    for (;;) {
        const ssize_t moved = transfer_some(op, which);
        if (moved < 0) {
            if (errno == EINTR) continue;
            if (would_block(errno)) return false;
            if (errno == EOPNOTSUPP and is_file) {
                op.target->side(which).stop_speculation();
                return false;
            }
            return fail(op, errno);
        }
        op.transferred += static_cast<std::size_t>(moved);
        ENSURE(op.transferred <= wanted, "the kernel moved more than it was asked to");
        if (moved == 0 or not wants_all or op.transferred >= wanted) return true;
    }
}

bool attempt_accept(operation_record& op, socket_address* peer) noexcept {
    ENSURE(op.transferred == 0, "the connection that it has would be lost");
    const int descriptor = accept_call(op.target->native.descriptor, peer);
    if (descriptor < 0) return not would_block(errno) and fail(op, errno);
    op.transferred = static_cast<std::size_t>(descriptor);
    return true;
}

bool attempt_accept_ahead(operation_record& op) noexcept {
    auto& request = *static_cast<accept_request*>(op.argument);
    request.knows_peer = true;
    return attempt_accept(op, &request.peer);
}

bool is_ready(int descriptor, short events) noexcept {
    pollfd watched{.fd = descriptor, .events = events, .revents = 0};
    return ::poll(&watched, 1, 0) > 0;
}

// `backend_word` records that the connection is pending.
bool attempt_connect(operation_record& op) noexcept {
    ENSURE(op.backend_word <= 1, "a connect has begun, or not");
    const int fd = op.target->native.descriptor;
    const int code = op.backend_word == 0
                         ? begin_connect(fd, *static_cast<const socket_address*>(op.argument))
                         : connect_outcome(fd);
    op.backend_word = 1;
    if (code == EINPROGRESS) return false;
    return code == 0 or fail(op, code);
}

bool attempt_datagram(operation_record& op, direction which) noexcept {
    auto& request = *static_cast<datagram_request*>(op.argument);
    const native_handle& native = op.target->native;
    ENSURE(op.transferred == 0, "a datagram is moved by one call");
    for (bool is_last = which == direction::in;; is_last = true) {
        const std::ptrdiff_t moved = datagram_call(native, which, {op.pieces, op.piece_count}, request);
        if (moved >= 0) {
            op.transferred = static_cast<std::size_t>(moved);
            return true;
        }
        const int code = errno;
        if (not would_block(code)) return fail(op, code);
        if (which == direction::in or not waits_for_receiver(native, request)) return false;
        // There may be space now, if the sender's own queue was full.
        if (is_last) return fail(op, code);
    }
}

bool attempt_call(operation_record& op) noexcept {
    const std::optional<int> code = static_cast<ready_call*>(op.argument)->attempt(op.target->native);
    if (not code) return false;
    op.error_code = *code;
    return true;
}

// Only the target may be waited for here; see async_splice for the other side.
bool attempt_splice(operation_record& op) noexcept {
    auto& transfer = *static_cast<splice_transfer*>(op.argument);
    const bool is_out = op.kind == operation_kind::splice_out;
    // The properties of the descriptor that earlier transfers have found, and that this one finds.
    native_handle& near = is_out ? transfer.to : transfer.from;
    near.nonblocking = near.nonblocking or op.target->native.nonblocking;
    const splice_step step = advance(transfer);
    ENSURE(transfer.moved >= op.transferred, "a transfer goes forwards");
    if (near.nonblocking) record_nonblocking(*op.target);
    op.transferred = transfer.moved;
    using what = splice_step::what;
    if (step.outcome == what::finished) return step.code == 0 or fail(op, step.code);
    const bool waits_here = step.outcome == (is_out ? what::waits_for_target : what::waits_for_source);
    return step.outcome != what::has_more and not waits_here and fail(op, EAGAIN);
}

void pop_finished(registration::half& half, operation_queue& ready) noexcept {
    operation_record* const finished = half.queue.pop_front();
    ENSURE(finished->at != operation_record::stage::ready, "an operation finishes once");
    if (half.in_flight > 0) --half.in_flight;
    finished->at = operation_record::stage::ready;
    ready.push_back(*finished);
}

bool shares_calls(const registration& target, const operation_record& op) noexcept {
    return target.native.stream and (op.kind == operation_kind::read or op.kind == operation_kind::write);
}

// Returns whether a part of a write is in the stream and the rest never will be. The writes after
// it must not be sent after the gap.
bool was_cut_short(const operation_record& op) noexcept {
    return op.kind == operation_kind::write and op.error_code == 0 and op.target->native.stream and
           op.transferred < requested_bytes(op);
}

// Truncates a list to its first `bytes_max` bytes.
void truncate(gathered& all, std::span<buffer> pieces, std::size_t bytes_max) noexcept {
    if (all.bytes <= bytes_max) return;
    std::size_t left = bytes_max;
    for (std::size_t i = 0; i < all.pieces; ++i) {
        if (pieces[i].size() < left) {
            left -= pieces[i].size();
            continue;
        }
        pieces[i] = {pieces[i].data(), left};
        all.pieces = i + 1;
        break;
    }
    all.bytes = bytes_max;
}

// One vectored call for several operations.
progress serve_gathered(registration::half& half, operation_queue& ready, std::size_t bytes_max) noexcept {
    std::array<buffer, limits::gathered_pieces_max> pieces;
    gathered all = gather(half, pieces);
    truncate(all, pieces, bytes_max);
    ENSURE(all.operations != 0 and all.pieces <= pieces.size(), "a call covers the front, within its list");
    for (;;) {
        const ssize_t moved =
            transfer_call(half.owner->native, half.which, std::span(pieces).first(all.pieces), 0, wait::no);
        if (moved < 0) {
            if (errno == EINTR) continue;
            if (would_block(errno)) {
                // Those after the first may have to wait; if it asks for no bytes, it need not.
                const operation_record* const waiting = half.queue.front();
                distribute(half, 0, ready);
                return half.queue.front() == waiting ? progress::would_block : progress::finished;
            }
            (void)fail(*half.queue.front(), errno);
            finish_front(half, ready);
            return progress::finished;
        }
        if (moved == 0 and all.bytes != 0) {  // end of file: the next request finds it again
            pop_finished(half, ready);
            return progress::finished;
        }
        distribute(half, static_cast<std::size_t>(moved), ready);
        return static_cast<std::size_t>(moved) < all.bytes ? progress::moved : progress::finished;
    }
}

}  // namespace

void finish_front(registration::half& half, operation_queue& ready) noexcept {
    ENSURE(not half.queue.empty(), "an outcome of no operation");
    const bool gap = was_cut_short(*half.queue.front());
    pop_finished(half, ready);
    while (gap and not half.queue.empty()) {
        half.queue.front()->error_code = ECANCELED;
        pop_finished(half, ready);
    }
}

std::size_t remaining_pieces(const operation_record& op, std::span<buffer> out) noexcept {
    std::size_t skip = op.transferred;
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < op.piece_count and count < out.size(); ++i) {
        const buffer& piece = op.pieces[i];
        // Empty segments are skipped as well: a call with only empty segments moves no bytes, which
        // looks like the end.
        if (skip >= piece.size()) {
            skip -= piece.size();
            continue;
        }
        out[count++] = {piece.data() + skip, piece.size() - skip};
        skip = 0;
    }
    ENSURE(skip == 0, "an operation has moved more than it asked for");
    return count;
}

std::size_t requested_bytes(const operation_record& op) noexcept {
    std::size_t total = 0;
    for (std::uint32_t i = 0; i < op.piece_count; ++i)
        total += op.pieces[i].size();
    return total;
}

bool has_too_many_pieces(const operation_record& op) noexcept {
    const native_handle& native = op.target->native;
    return op.piece_count > limits::pieces_per_call_max and native.kind == handle_kind::socket and
           not native.stream;
}

bool attempt(operation_record& op) noexcept {
    ENSURE(op.error_code == 0, "an operation that has failed is attempted again");
    switch (op.kind) {
        case operation_kind::read:
            return attempt_transfer(op, direction::in);
        case operation_kind::write:
        case operation_kind::write_some:
            return attempt_transfer(op, direction::out);
        case operation_kind::accept:
            return attempt_accept(op, static_cast<socket_address*>(op.argument));
        case operation_kind::accept_ahead:
            return attempt_accept_ahead(op);
        case operation_kind::connect:
            return attempt_connect(op);
        case operation_kind::ready_to_read:
            return is_ready(op.target->native.descriptor, POLLIN);
        case operation_kind::ready_to_write:
            return is_ready(op.target->native.descriptor, POLLOUT);
        case operation_kind::splice_out:
        case operation_kind::splice_in:
            return attempt_splice(op);
        case operation_kind::receive_from:
            return attempt_datagram(op, direction::in);
        case operation_kind::send_to:
            return attempt_datagram(op, direction::out);
        case operation_kind::call_in:
        case operation_kind::call_out:
            return attempt_call(op);
        case operation_kind::receive:  // only in the back end
        case operation_kind::wait_word:
            return false;
        case operation_kind::barrier:
        case operation_kind::sleep:
        case operation_kind::external:
            break;
    }
    ENSURE(false, "an operation of this kind is not attempted");
    return false;
}

progress advance(operation_record& op, std::size_t bytes_max, wait waits) noexcept {
    if (not is_transfer(op.kind)) {
        return attempt(op) ? progress::finished : progress::would_block;
    }
    if (has_too_many_pieces(op)) {
        (void)fail(op, EMSGSIZE);
        return progress::finished;
    }
    const std::size_t wanted = requested_bytes(op);
    if (wanted == 0 and op.target->native.stream) return progress::finished;
    const direction which = direction_of(op.kind);
    std::array<buffer, limits::gathered_pieces_max> pieces;
    gathered rest{.pieces = remaining_pieces(op, pieces), .bytes = wanted - op.transferred};
    truncate(rest, pieces, bytes_max);
    ssize_t moved = -1;
    do {
        moved = transfer_call(op.target->native, which, std::span(pieces).first(rest.pieces),
                              op.offset + op.transferred, waits);
    } while (moved < 0 and errno == EINTR);
    if (moved < 0) {
        if (would_block(errno)) return progress::would_block;
        (void)fail(op, errno);
        return progress::finished;
    }
    ENSURE(static_cast<std::size_t>(moved) <= rest.bytes, "the kernel moved more than it was asked to");
    op.transferred += static_cast<std::size_t>(moved);
    const bool is_file = op.target->native.kind == handle_kind::file;
    const bool wants_all = amount_of(op.kind) == amount::all and (is_file or which == direction::out);
    const bool finished = moved == 0 or not wants_all or op.transferred >= wanted;
    return finished ? progress::finished : progress::moved;
}

progress advance_together(registration::half& half, operation_queue& ready, std::size_t bytes_max) noexcept {
    return serve_gathered(half, ready, bytes_max);
}

gathered gather(const registration::half& half, std::span<buffer> pieces) noexcept {
    gathered all;
    for (const operation_record& op : half.queue) {
        const bool fits = op.piece_count <= pieces.size() - all.pieces and
                          all.operations != std::numeric_limits<decltype(all.operations)>::max();
        const bool joins =
            fits and shares_calls(*half.owner, op) and shares_calls(*half.owner, *half.queue.front());
        if (all.operations != 0 and not joins) break;
        const std::size_t count = remaining_pieces(op, pieces.subspan(all.pieces));
        for (std::size_t i = 0; i < count; ++i)
            all.bytes += pieces[all.pieces + i].size();
        all.pieces += count;
        ++all.operations;
    }
    return all;
}

void distribute(registration::half& half, std::size_t bytes, operation_queue& ready) noexcept {
    while (operation_record* const op = half.queue.front()) {
        // An operation other than a transfer asks for no bytes either, but has not happened.
        if (not shares_calls(*half.owner, *op)) break;
        const std::size_t wanted = requested_bytes(*op) - op->transferred;
        const std::size_t taken = std::min(bytes, wanted);
        op->transferred += taken;
        bytes -= taken;
        const bool finished = taken == wanted or (half.which == direction::in and taken != 0);
        if (not finished) break;
        pop_finished(half, ready);  // and then the operations after it that ask for no bytes
    }
    ENSURE(bytes == 0, "the kernel moved more than it was asked to");
}

bool serve(registration::half& half, operation_queue& ready, int calls_max) noexcept {
    for (int calls = 0; calls < calls_max and not half.queue.empty(); ++calls) {
        operation_record& front = *half.queue.front();
        const bool alone = half.queue.back() == &front or not shares_calls(*half.owner, front);
        if (not alone) {
            constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
            // A stream that transferred less than requested is empty or full; another call would
            // only return EAGAIN. At the end of file one more round through the poller finds it.
            if (serve_gathered(half, ready, unlimited) != progress::finished) return true;
            continue;
        }
        if (not attempt(front)) return true;
        finish_front(half, ready);
    }
    return false;
}

}  // namespace sluice::io
