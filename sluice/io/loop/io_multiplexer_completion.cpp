// How operations complete, and how their receivers are signalled.

#include <algorithm>

#include "sluice/io/call/limits.hpp"
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
    // Once it is pushed, the loop may end, and its owner destroy it: let_finish() waits for us. The increment
    // is visible to the thread that pops `op`; release: pairs with let_finish().
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
    external_work& work = *static_cast<external_work*>(op.argument);
    if (sharing_ != nullptr) return call_pinned(op, &external_work::poll);
    work.poll();
    take_completed_elsewhere();
    // In a simulation, only the back end lets time pass.
    if (op.at == operation_record::stage::in_flight and not waits_for_threads()) backend_poll(op);
}

void io_multiplexer::take_completed_elsewhere() noexcept {
    while (operation_record* const op = completed_elsewhere_.pop()) {
        if (op->at == operation_record::stage::trying) [[unlikely]] {
            pinned_word(op->backend_word).note_completion();  // a thread is in one of its functions
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
    // Before the outcome is known, or while its signal waits in `ready_`, done simply follows value.
    if (op.at != operation_record::stage::ready and op.at != operation_record::stage::valued) return;
    --queued_;
    if (op.at == operation_record::stage::valued) ready_.push_back(op);
}

void operation_record::signal_both(io_multiplexer& by) noexcept {
    detail::engine::give_both(by, *this, [this] { signal_value(); }, [this] { signal_done(); });
}

// Returns whether this completed the operation; a late done signal is only its echo.
bool io_multiplexer::signal(operation_record& op) noexcept {
    signalling_ = true;
    const bool completes = op.at == operation_record::stage::ready;
    if (completes and not op.notification_pending) [[likely]] {
        op.signal_both(*this);  // `op` may be gone, or started again
    } else if (completes) {
        op.at = operation_record::stage::valued;
        op.has_completed = true;
        op.signal_value();  // done follows from finish_notification, even if that comes meanwhile
    } else {
        ENSURE(op.at == operation_record::stage::valued, "done is signalled before the value");
        retire(op);
        op.signal_done();  // as above
    }
    signalling_ = false;
    return completes;
}

int io_multiplexer::signal_ready(int max) noexcept {
    int count = 0;
    max = std::min(max, limits::completions_per_pass_max);
    is_crowded_ = batches_crowds_ and finished_ >= limits::crowd;
    finished_ = 0;
    while (count < max) {
        operation_record* const op = ready_.pop_front();
        if (op == nullptr) break;
        if (signal(*op)) ++count;
        // A coroutine that has used up what it may complete inline waits in `ready_` for the next pass, which
        // grants it more; to go on here would complete one by one, and dearer, what is always ready. Behind
        // the signal, so that a program that only polls, whose budget nobody renews, gets on as well.
        if (inline_left_ <= 0) break;
    }
    is_crowded_ = false;
    return count;
}

// --- completing

result<int> io_multiplexer::complete(int max, time_point until) noexcept {
    ensure_owner();
    ENSURE(not signalling_, "complete_io and run must not be called from a receiver");
    inline_left_ = limits::inline_completions_max;
    max = std::min(max, limits::completions_per_pass_max);
    int signalled = 0;
    result<void> asked;
    take_completed_elsewhere();
    // A handle that is always ready must not keep the others from being looked at.
    constexpr int passes_without_backend_max = 4;
    const bool backend_is_idle = queued_ == 0 and (until == no_wait or not ready_.empty());
    if (backend_is_idle or (not ready_.empty() and ++passes_without_backend_ < passes_without_backend_max)) {
        // What is ready is enough for this pass.
    } else {
        passes_without_backend_ = 0;
        direct_left_ = max;
        asked = backend_complete(ready_.empty() ? until : no_wait);
        signalled = max - std::exchange(direct_left_, 0);
        take_completed_elsewhere();  // for which it may have woken up
    }
    const int count = signalled + signal_ready(max - signalled);
    if (count > 0) return count;
    if (not asked) [[unlikely]]
        return failure(asked.error());
    return idle_value();
}

result<int> io_multiplexer::complete_io(int max) noexcept {
    if (sharing_ != nullptr) return run_shared(share_of_work::io, maximum(max), no_wait);
    return complete(maximum(max), no_wait);
}

result<int> io_multiplexer::complete_io_within(duration within, int max) noexcept {
    return complete_io_until(after(now(), within), max);
}

result<int> io_multiplexer::complete_io_until(time_point until, int max) noexcept {
    return repeat(max, until, [this] { return now(); }, [this](int left) { return complete_io(left); });
}

bool io_multiplexer::serve_half(registration::half& half) noexcept {
    if (half.in_flight != 0) [[unlikely]]
        return false;  // another thread's call is in progress, after which it serves this half
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
void io_multiplexer::look_at(operation_record& op) noexcept {
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
    look_at(op);
    if (signalling_ or op.at != operation_record::stage::ready) return op.has_completed;
    ready_.erase(op);
    (void)signal(op);  // `op` may be gone, or started again
    return true;
}

}  // namespace sluice::io
