// How operations end early.

#include <atomic>

#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/loop/pinned_word.hpp"

namespace sluice::io {

using detail::operation_record;

// Removes an operation that the kernel does not know of from its queue, and finishes it.
void io_multiplexer::withdraw(operation_record& op, int code) noexcept {
    ENSURE(code != 0, "ends early without a cause");
    ENSURE(queued_ != 0, "an operation is withdrawn that does not wait");
    if (op.kind != operation_kind::sleep) op.target->side(direction_of(op.kind)).queue.erase(op);
    const bool broke_stream = leaves_gap(op.kind) and op.transferred != 0;
    const direction which = direction_of(op.kind);
    if (op.transferred == 0) op.error_code = code;
    registration& target = *op.target;
    finish(op);
    if (not broke_stream) return;
    // A part of it is in the stream, or out of it: later operations must not use the bytes after
    // the gap.
    registration::half& half = target.side(which);
    while (operation_record* const follower = half.queue.front()) {
        half.queue.erase(*follower);
        follower->error_code = ECANCELED;
        finish(*follower);
    }
}

void io_multiplexer::cancel(operation_record& op, int code) noexcept {
    if (not is_inside()) [[unlikely]]
        return cancel_outside(op, code);
    ENSURE(code == ECANCELED or code == ETIMEDOUT, "operations are cancelled, or their time is up");
    if (op.is_idle() or op.at == operation_record::stage::ready or op.at == operation_record::stage::valued)
        return;
    ENSURE(op.target->multiplexer == this, "an operation is cancelled by the multiplexer of its handle");
    // A worker thread that is about to begin the operation may read it. relaxed: see
    // worker_pool::cancel.
    const std::atomic_ref wish(op.cancel_code);
    const bool is_first = wish.load(std::memory_order_relaxed) == 0;
    if (is_first) wish.store(code, std::memory_order_relaxed);
    if (op.timer_link.is_linked()) timers_.erase(op);
    if (op.at == operation_record::stage::trying or op.at == operation_record::stage::begun) {
        if (is_first) pinned_word(op.backend_word).record_cancellation();
        return;  // the thread that has it handles it
    }
    if (op.kind == operation_kind::external) {
        if (not is_first) return;
        external_work& work = *static_cast<external_work*>(op.argument);
        if (sharing_ != nullptr) return call_pinned(op, &external_work::end);
        work.end();
        return;
    }
    const bool ours = op.at == operation_record::stage::waiting and
                      (op.kind == operation_kind::sleep or op.target->is_stream());
    if (ours) {
        withdraw(op, code);
    } else {
        backend_cancel(op);
    }
}

// Returns whether only signals are missing.
bool io_multiplexer::is_over(const operation_record& op) noexcept {
    const bool is_known = op.at == operation_record::stage::ready or op.at == operation_record::stage::valued;
    return op.is_idle() or (is_known and not op.notification_pending);
}

bool io_multiplexer::abandon(operation_record& op) noexcept {
    if (sharing_ != nullptr) return abandon_shared(op);
    const bool is_outside_of_turns = turn() % 2 == 0;
    take_completed_elsewhere();
    const bool is_external = op.kind == operation_kind::external and not is_over(op);
    if (is_external and static_cast<external_work*>(op.argument)->abandon()) {
        op.error_code = ECANCELED;
        finish(op);
    } else {
        cancel(op, ECANCELED);
    }
    while (not is_over(op)) {
        // While `ready_` is not empty the back end does not sleep.
        operation_queue kept = std::move(ready_);
        const result<void> asked = backend_complete(now() + std::chrono::milliseconds(10));
        kept.append(std::move(ready_));
        ready_ = std::move(kept);
        take_completed_elsewhere();
        if (not asked) [[unlikely]]
            report_unreturned(unreturned_failure::loop_cannot_run, asked.error().message().c_str());
    }
    if (is_outside_of_turns and turn() % 2 != 0) end_turn();
    if (op.is_idle()) return false;
    if (op.queue_link.is_linked()) ready_.erase(op);
    ENSURE(pending_ != 0 and op.target->pending != 0, "an operation is abandoned that was not counted");
    retire(op);
    return not op.has_completed;
}

void io_multiplexer::prioritise(operation_record& op) noexcept {
    const entry in(*this);
    ENSURE(op.at == operation_record::stage::waiting and op.target->is_stream());
    registration::half& half = op.target->side(direction_of(op.kind));
    if (half.in_flight == 0) {
        half.queue.erase(op);
        half.queue.push_front(op);
    }
    mark_dirty(half);
}

}  // namespace sluice::io
