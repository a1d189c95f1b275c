// How operations complete, and how their receivers are signalled.

#include <algorithm>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/call/system_call.hpp"
#include "sluice/io/loop/attempt.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/loop/passes.hpp"
#include "sluice/io/loop/pinned_word.hpp"

namespace sluice::io {

using detail::operation_record;

using namespace passes;

// --- from other threads

void io_multiplexer::complete_elsewhere(operation_record& op) noexcept {
    ENSURE(op.kind == operation_kind::external, "only external work completes elsewhere");
    // Once it is pushed, the loop may end, and its owner destroy it: let_finish() waits for this
    // thread. The increment is visible to the thread that pops `op`; release: pairs with
    // let_finish().
    completing_.fetch_add(1, std::memory_order_relaxed);
    (void)completed_elsewhere_.push(op);
    wake_if_sleeping();
    completing_.fetch_sub(1, std::memory_order_release);
}

void io_multiplexer::post_last(posted_item& item) noexcept {
    completing_.fetch_add(1, std::memory_order_relaxed);  // as above
    post(item);
    completing_.fetch_sub(1, std::memory_order_release);
}

void io_multiplexer::poll_external(operation_record& op) noexcept {
    ENSURE(op.at == operation_record::stage::in_flight, "external work is in flight until it has completed");
    external_work& work = *static_cast<external_work*>(op.argument);
    if (sharing_ != nullptr) return call_pinned(op, &external_work::poll);
    work.poll();
    take_completed_elsewhere();
    // In a simulation, only the back end advances the time.
    if (op.at == operation_record::stage::in_flight and not waits_for_threads()) backend_poll(op);
}

void io_multiplexer::finish_completed_elsewhere() noexcept {
    while (operation_record* const op = completed_elsewhere_.pop()) {
        if (op->at == operation_record::stage::trying) [[unlikely]] {
            pinned_word(op->backend_word).record_completion();  // a thread is in its functions
        } else {
            ENSURE(op->at == operation_record::stage::in_flight, "external work has completed twice");
            finish(*op);
        }
    }
}

// --- signalling

void io_multiplexer::finish_notification(operation_record& op) noexcept {
    ENSURE(op.notification_pending);
    op.notification_pending = false;
    // Before the outcome is known, or while its signal waits in `ready_`, done simply follows
    // value.
    if (op.at != operation_record::stage::ready and op.at != operation_record::stage::valued) return;
    ENSURE(queued_ != 0, "an operation ends that the back end was not known to have");
    --queued_;
    if (op.at == operation_record::stage::valued) ready_.push_back(op);
}

void operation_record::signal_both(io_multiplexer& by) noexcept {
    detail::engine::give_both(by, *this, [this] { signal_value(); }, [this] { signal_done(); });
}

// --- completing

// Makes the call of a half that waits for one segment, as begin() does. `moved`: another call is
// needed.
[[gnu::always_inline]] inline progress io_multiplexer::serve_one_piece(registration::half& half) noexcept {
    operation_record& op = *half.queue.front();
    const auto asked = static_cast<std::ptrdiff_t>(op.pieces->size());
    const auto enough = half.call.any_will_do ? 0 : asked;
    const std::ptrdiff_t moved = make_call(half.call, half.owner->native.descriptor, *op.pieces, op.offset);
    if (moved == -EAGAIN) return progress::would_block;
    ENSURE(moved <= asked, "the kernel moved more than it was asked to");
    if (moved > 0) op.transferred = static_cast<std::size_t>(moved);
    if (moved == -EINTR or (moved >= 0 and moved < enough)) [[unlikely]]
        return progress::moved;
    if (moved < 0) op.error_code = static_cast<int>(-moved);
    half.queue.erase(op);
    finish(op);
    return progress::finished;
}

// Nearly every half is served here in place instead of by the loops of serve() and the functions
// below it, because every return after a system call is mispredicted.
bool io_multiplexer::serve_half(registration::half& half) noexcept {
    if (half.in_flight != 0) [[unlikely]]
        return false;  // another thread's call is in progress, after which it serves this half
    if (half.call.is_known() and waits_for_one_piece(half)) [[likely]] {
        const progress served = serve_one_piece(half);
        if (served != progress::moved) [[likely]]
            return served == progress::would_block;
    }
    return serve_longer(half);
}

// Returns whether operations still wait, because they would block.
bool io_multiplexer::serve_longer(registration::half& half) noexcept {
    ENSURE(half.in_flight == 0, "calls are made on a half while the kernel has requests of it");
    operation_queue served;
    constexpr int calls_per_pass = 4;
    const bool would_block = serve(half, served, calls_per_pass);
    while (operation_record* op = served.pop_front())
        finish(*op);
    if (half.queue.empty()) return false;
    if (not would_block) mark_dirty(half);
    return would_block;
}

bool io_multiplexer::backend_attempt(operation_record& op) noexcept {
    return attempt(op);
}

void io_multiplexer::backend_poll(operation_record& op) noexcept {
    if (op.at == operation_record::stage::waiting and op.target->is_stream() and
        op.kind != operation_kind::sleep) {
        (void)serve_half(op.target->side(direction_of(op.kind)));
    } else {
        (void)backend_complete(no_wait);  // an error is returned by complete_io
    }
}

// Finishes a started operation if it is ready.
void io_multiplexer::inspect(operation_record& op) noexcept {
    if (op.at != operation_record::stage::waiting and op.at != operation_record::stage::in_flight) return;
    if (op.kind == operation_kind::external) {
        poll_external(op);
    } else {
        backend_poll(op);
    }
    if (op.timer_link.is_linked() and op.expires <= now()) expire(op);
}

bool io_multiplexer::poll(operation_record& op) noexcept {
    if (not is_inside()) [[unlikely]]
        return poll_outside(op);
    if (op.is_idle()) return op.has_completed;
    inspect(op);
    if (signalling_ or op.at != operation_record::stage::ready) return op.has_completed;
    ready_.erase(op);
    (void)signal(op);  // `op` may be gone, or started again
    return true;
}

}  // namespace sluice::io
