// How operations begin: at once, if a call that does not wait completes them; otherwise in a queue.

#include <algorithm>

#include "sluice/io/call/blocking.hpp"
#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/call/system_call.hpp"
#include "sluice/io/loop/attempt.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/external_work.hpp"

namespace sluice::io {

using detail::operation_record;

bool io_multiplexer::wants_attempt(const operation_record& op, initiation how) noexcept {
    if (how == initiation::automatic) how = initiation_;
    if (how == initiation::batched or op.kind >= operation_kind::barrier) return false;
    registration::half& half = op.target->side(direction_of(op.kind));
    // An older request on the stream goes first; it would have to wait, so this one would too.
    if (not half.queue.empty() or not half.may_speculate()) return false;
    if (queries_before_speculating_ and not may_speculate(op)) return false;
    if (how == initiation::speculative) return true;
    if (is_batching_ and op.target->native.kind == handle_kind::socket) return false;
    if (half.skipped >= half.pause) [[likely]]
        return true;
    ++half.skipped;
    return false;
}

// A file without RWF_NOWAIT supports only calls that may wait. The same holds for a barrier that
// only starts write-back.
bool io_multiplexer::can_refuse_to_wait(const operation_record& op) noexcept {
    if (op.target->is_stream()) return true;
    if (op.kind == operation_kind::barrier) return waits_for_device(op.durability);
    return op.target->side(direction_of(op.kind)).may_speculate();
}

// Returns whether this is the common operation: a transfer of one segment, without an initiation of
// its own, on a handle that was recently ready. One branch decides it; see system_call.hpp.
bool io_multiplexer::is_usual(const operation_record& op, const registration::half& half,
                              initiation how) const noexcept {
    const auto word = [](auto of) { return static_cast<unsigned>(of); };
    const unsigned unusual = word(how) | word(initiation_) | word(queries_before_speculating_) |
                             word(is_batching_) | word(half.never_speculate) | half.pause |
                             word(not half.queue.empty()) | word(not half.call.is_known()) |
                             word(op.kind > operation_kind::write) | (op.piece_count ^ 1U);
    static_assert(word(initiation::automatic) == 0);
    return unusual == 0;
}

bool io_multiplexer::begin_batched(operation_record& op) noexcept {
    reset(op);
    // The result of begin_slow_path for nearly all batched operations.
    const bool uses_fast_path = is_transfer(op.kind) and not op.target->is_stream() and op.limit.is_none();
    if (not uses_fast_path) [[unlikely]]
        return begin_slow_path(op);
    ++queued_;
    op.at = operation_record::stage::waiting;
    backend_submit(op);
    return false;
}

// Returns whether the outcome is known.
bool io_multiplexer::begin(operation_record& op, initiation how) noexcept {
    reset(op);
    registration::half& half = op.target->side(direction_of(op.kind));
    if (not is_usual(op, half, how)) [[unlikely]]
        return begin_uncommon_path(op, how);
    const std::size_t wanted = op.pieces->size();
    const std::size_t may_lack = half.call.any_will_do ? wanted : 0;
    const std::ptrdiff_t moved = make_call(half.call, op.target->native.descriptor, *op.pieces, op.offset);
    // One comparison also detects errors and results of more than was requested: both wrap.
    if (wanted - static_cast<std::size_t>(moved) > may_lack) [[unlikely]]
        return begin_on(op, checked_outcome(moved, wanted));
    op.transferred = static_cast<std::size_t>(moved);
    op.at = operation_record::stage::ready;
    return true;
}

bool io_multiplexer::begin_uncommon_path(operation_record& op, initiation how) noexcept {
    if (not wants_attempt(op, how)) return begin_slow_path(op);
    return record_attempt(op, attempt(op));
}

// Continues after a first call that did not complete the operation.
bool io_multiplexer::begin_on(operation_record& op, std::ptrdiff_t moved) noexcept {
    if (moved == -EAGAIN) return record_attempt(op, false);
    ENSURE(op.piece_count == 1, "the first call of begin() moves the only piece");
    if (moved > 0) op.transferred = static_cast<std::size_t>(moved);
    // attempt() handles these.
    const bool goes_on = moved > 0 or moved == -EINTR or moved == -EOPNOTSUPP;
    if (goes_on) return record_attempt(op, attempt(op));
    op.error_code = static_cast<int>(-moved);
    return record_attempt(op, true);
}

bool io_multiplexer::record_attempt(operation_record& op, bool finished) noexcept {
    registration::half& half = op.target->side(direction_of(op.kind));
    ENSURE(op.target->pending != 0, "an operation is attempted that its handle has not counted");
    half.skipped = 0;
    if (finished) {
        half.pause = 0;
        op.at = operation_record::stage::ready;
        return true;
    }
    constexpr std::uint8_t pause_max = 63;
    half.pause = std::min<std::uint8_t>(pause_max, static_cast<std::uint8_t>(half.pause * 2 + 1));
    return begin_slow_path(op);
}

void io_multiplexer::mark_dirty(registration::half& half) noexcept {
    ENSURE(half.owner->multiplexer == this, "a half is served by the multiplexer of its handle");
    if (not half.dirty_link.is_linked()) dirty_.push_back(half);
}

inline void io_multiplexer::leave_to_loop(operation_record& op) noexcept {
    ENSURE(op.target->multiplexer == this, "an operation goes through the multiplexer of its handle");
    op.at = operation_record::stage::waiting;
    ++queued_;
    ENSURE(queued_ <= pending_, "more operations wait for the back end than are pending");
    if (op.kind == operation_kind::sleep) return;
    if (op.target->is_stream()) [[likely]] {
        registration::half& half = op.target->side(direction_of(op.kind));
        half.queue.push_back(op);
        mark_dirty(half);
    } else {
        backend_submit(op);
    }
}

void io_multiplexer::enqueue(operation_record& op) noexcept {
    const bool timed =
        not op.limit.is_none() and (not op.limit.is_zero() or op.kind == operation_kind::sleep);
    if (timed) [[unlikely]]
        arm_timer(op);
    leave_to_loop(op);
}

bool io_multiplexer::begin_external(operation_record& op) noexcept {
    external_work& work = *static_cast<external_work*>(op.argument);
    work.op_ = &op;
    if (sharing_ != nullptr) return begin_external_shared(op, work);
    // Before it begins, because it may be complete, on another thread, before begin() returns.
    op.at = operation_record::stage::in_flight;
    const std::optional<int> code = work.begin(not op.limit.is_zero());
    if (code) {
        op.error_code = *code;
        op.at = operation_record::stage::ready;
        return true;
    }
    ++queued_;
    if (not op.limit.is_none() and not op.limit.is_zero()) arm_timer(op);
    return false;
}

// Returns whether it must not wait. The kernel cannot end a barrier, so one whose deadline has
// passed does not begin.
bool io_multiplexer::has_no_time(const operation_record& op) const noexcept {
    if (op.kind != operation_kind::barrier or op.limit.is_none()) return op.limit.is_zero();
    return op.limit.remaining(now(), now(), utc_now()) == deadline::duration::zero();
}

namespace {

// Returns whether it only waits for readiness: no bytes are transferred.
constexpr bool waits_for_readiness(operation_kind kind) noexcept {
    return kind == operation_kind::call_in or kind == operation_kind::call_out or
           kind == operation_kind::ready_to_read or kind == operation_kind::ready_to_write;
}

}  // namespace

// An operation that did not complete at once waits or, if it must not wait, has failed.
bool io_multiplexer::begin_slow_path(operation_record& op) noexcept {
    // Nothing below concerns a transfer that may wait.
    if (is_transfer(op.kind) and op.limit.is_none()) [[likely]] {
        leave_to_loop(op);
        return false;
    }
    if (op.kind == operation_kind::external) return begin_external(op);
    if (op.kind == operation_kind::barrier and op.target->is_stream()) {
        // Nothing to make durable, and so nothing to wait for.
        op.at = operation_record::stage::ready;
        return true;
    }
    if (waits_for_readiness(op.kind) and not op.target->is_stream()) {
        if (not attempt(op)) op.error_code = EAGAIN;  // a file has no readiness to wait for
        op.at = operation_record::stage::ready;
        return true;
    }
    if (has_no_time(op) and op.kind != operation_kind::sleep and can_refuse_to_wait(op)) {
        // Not tried above if it is batched, or if recent tries had no success: this is the caller's
        // only chance.
        const bool is_first = op.target->side(direction_of(op.kind)).queue.empty();
        const bool finished = is_first and op.kind != operation_kind::barrier and backend_attempt(op);
        // A handle that has just turned out not to support calls that do not wait is waited for
        // after all, as it is from then on.
        if (finished or can_refuse_to_wait(op)) {
            if (not finished and op.transferred == 0) op.error_code = ETIMEDOUT;
            op.at = operation_record::stage::ready;
            return true;
        }
    }
    enqueue(op);
    return false;
}

}  // namespace sluice::io
