// The loop of a multiplexer, and posted items.

#include <algorithm>
#include <thread>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/passes.hpp"

namespace sluice::io {

using detail::operation_record;

using namespace passes;

// --- posting
// -------------------------------------------------------------------------------------------------

void io_multiplexer::post(posted_item& item) noexcept {
    ENSURE(not refuses_all_, "no thread invokes items of a multiplexer that refuses all operations");
    (void)posted_.push(item);
    wake_if_sleeping();
}

void io_multiplexer::let_finish() noexcept {
    // acquire: the accesses of those threads come before our end. They are a few instructions from
    // theirs.
    while (completing_.load(std::memory_order_acquire) != 0)
        std::this_thread::yield();
}

void io_multiplexer::wake_if_sleeping() noexcept {
    // seq_cst, with the fence in prepare_to_sleep: either we see `sleeping_`, or the loop sees the
    // pushed item.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_relaxed)) backend_wake();
}

io_multiplexer::work_guard::~work_guard() {
    if (multiplexer_ == nullptr) return;
    // As in complete_elsewhere(): the loop may end, and its owner destroy it.
    multiplexer_->completing_.fetch_add(1, std::memory_order_relaxed);
    // release: pairs with is_exhausted(), so that earlier posts of this thread are visible there.
    const int before = multiplexer_->guards_.fetch_sub(1, std::memory_order_release);
    ENSURE(before > 0, "more guards end than were made");
    if (not multiplexer_->is_inside()) multiplexer_->backend_wake();  // run() has to notice
    multiplexer_->completing_.fetch_sub(1, std::memory_order_release);
}

int io_multiplexer::invoke_some(int max) noexcept {
    ensure_owner();
    ENSURE(sharing_ == nullptr, "several threads invoke items while they are outside");
    int count = 0;
    if (posted_.empty()) [[likely]]
        return count;
    max = std::min(max, limits::posted_items_per_pass_max);
    while (count < max) {
        posted_item* const item = posted_.pop();
        if (item == nullptr) break;
        item->invoke();
        ++count;
    }
    return count;
}

result<int> io_multiplexer::invoke_posted_items(int max) noexcept {
    if (sharing_ != nullptr) return run_shared(share_of_work::posted, maximum(max), no_wait);
    return invoke_some(maximum(max));
}

result<int> io_multiplexer::invoke_posted_items_within(duration within, int max) noexcept {
    return invoke_posted_items_until(after(now(), within), max);
}

result<int> io_multiplexer::invoke_posted_items_until(time_point until, int max) noexcept {
    return repeat(
        max, until, [this] { return now(); }, [this](int left) { return invoke_posted_items(left); });
}

// --- signalling and completing
// -------------------------------------------------------------------------------------------------

// Returns whether this completed the operation; a late done signal does not count.
bool io_multiplexer::signal(operation_record& op) noexcept {
    signalling_ = true;
    const bool completes = op.at == operation_record::stage::ready;
    if (completes and not op.notification_pending) [[likely]] {
        op.signal_both(*this);  // `op` may be gone, or started again
    } else if (completes) {
        op.at = operation_record::stage::valued;
        op.has_completed = true;
        // Done follows from finish_notification, even if that comes during this call.
        op.signal_value();
    } else {
        ENSURE(op.at == operation_record::stage::valued, "done is signalled before the value");
        retire(op);
        op.signal_done();  // as above
    }
    signalling_ = false;
    return completes;
}

[[gnu::always_inline]] inline int io_multiplexer::signal_ready(int max) noexcept {
    ENSURE(not signalling_, "timeout_io must not be called from a receiver");
    int count = 0;
    max = std::min(max, limits::completions_per_pass_max);
    is_batching_ = batches_starts_ and finished_ >= limits::batching_completions_min;
    finished_ = 0;
    while (count < max) {
        operation_record* const op = ready_.pop_front();
        if (op == nullptr) break;
        if (signal(*op)) ++count;
        // A coroutine that has used up its inline completions waits in `ready_` for the next pass,
        // which grants it more. To continue here would complete operations that are always ready
        // one by one, which costs more. The check follows the signal, so that a program that only
        // polls, and never renews its budget, advances as well.
        if (inline_left_ <= 0) break;
    }
    is_batching_ = false;
    return count;
}

// In place, as are the passes around it and its callees: every return after a system call is
// mispredicted, and two are made from here.
[[gnu::always_inline]] inline result<int> io_multiplexer::complete(int max, time_point until) noexcept {
    ensure_owner();
    ENSURE(not signalling_, "complete_io and run must not be called from a receiver");
    ENSURE(direct_left_ == 0, "a pass begins inside of another");
    inline_left_ = limits::inline_completions_max;
    max = std::min(max, limits::completions_per_pass_max);
    int signalled = 0;
    result<void> asked;
    take_completed_elsewhere();
    // A handle that is always ready must not delay the others.
    constexpr int passes_without_backend_max = 4;
    const bool backend_is_idle = queued_ == 0 and (until == no_wait or not ready_.empty());
    if (backend_is_idle or (not ready_.empty() and ++passes_without_backend_ < passes_without_backend_max)) {
        // The ready operations are enough for this pass.
    } else {
        passes_without_backend_ = 0;
        direct_left_ = max;
        asked = backend_complete(ready_.empty() ? until : no_wait);
        signalled = max - std::exchange(direct_left_, 0);
        ENSURE(signalled >= 0 and signalled <= max, "the back end signals no more than a pass may");
        take_completed_elsewhere();  // for which it may have woken up
    }
    const int count = signalled + signal_ready(max - signalled);
    if (count > 0) return count;
    if (not asked) [[unlikely]]
        return failure(asked.error());
    return idle_value();
}

result<int> io_multiplexer::timeout_io(int max) noexcept {
    max = maximum(max);
    if (sharing_ != nullptr) return run_shared(share_of_work::timers, max, no_wait);
    const int count = expire_some(std::min(max, limits::completions_per_pass_max));
    if (count == 0) return idle_value();
    return std::max(count, signal_ready(max));
}

result<int> io_multiplexer::timeout_io_within(duration within, int max) noexcept {
    return timeout_io_until(after(now(), within), max);
}

result<int> io_multiplexer::timeout_io_until(time_point until, int max) noexcept {
    return repeat(max, until, [this] { return now(); }, [this](int left) { return timeout_io(left); });
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

// --- running
// -------------------------------------------------------------------------------------------------

// One pass over all available work. If there is none, waits for work until `until`.
[[gnu::always_inline]] inline result<int> io_multiplexer::run_once(int max, time_point until) noexcept {
    int count = invoke_some(max);
    if (not timers_.empty() and count < max) {
        const int expired = expire_some(max - count);
        if (expired != 0) count += std::max(expired, signal_ready(max - count));
    }
    if (count >= max) return count;
    // A wait in the same call that checks saves a system call each time the loop runs dry.
    if (count > 0 or is_exhausted()) until = no_wait;
    if (until != no_wait and not timers_.empty()) until = std::min(until, timers_.top()->expires);
    const result<int> completed = complete(max - count, until);
    if (not completed and count == 0) [[unlikely]]
        return completed;
    return count + std::max(0, completed.value_or(0));
}

[[gnu::always_inline]] inline result<int> io_multiplexer::turn_once(int max, time_point until) noexcept {
    const runs_here here(*this);
    begin_turn();
    const result<int> count = run_once(max, until);
    end_turn();
    return count;
}

// Returns whether nothing is pending and no guard exists. A guard that is destroyed wakes us; items
// posted under it come first.
bool io_multiplexer::is_exhausted() const noexcept {
    // acquire: pairs with ~work_guard.
    return pending_ == 0 and guards_.load(std::memory_order_acquire) == 0 and posted_.empty();
}

result<int> io_multiplexer::try_run(int max) noexcept {
    if (sharing_ != nullptr) return run_shared(share_of_work::all, maximum(max), no_wait);
    const result<int> count = turn_once(maximum(max), no_wait);
    if (not count or *count > 0) return count;
    return is_exhausted() ? nothing_pending : nothing_ready;
}

[[gnu::always_inline]] inline result<int> io_multiplexer::turn_until(time_point until, int max) noexcept {
    max = maximum(max);
    if (sharing_ != nullptr) [[unlikely]]
        return run_shared(share_of_work::all, max, until);
    for (;;) {
        const result<int> count = turn_once(max, until);
        if (not count or *count > 0) return count;
        if (is_exhausted()) return nothing_pending;
        if (max == 0 or backend_is_stalled()) return nothing_ready;
        if (until == forever) continue;
        if (until == no_wait or now() >= until) return try_run(max);
    }
}

result<int> io_multiplexer::try_run_until(time_point until, int max) noexcept {
    return turn_until(until, max);
}

result<int> io_multiplexer::try_run_for(duration within, int max) noexcept {
    return try_run_until(after(now(), within), max);
}

result<int> io_multiplexer::run(int max) noexcept {
    return turn_until(forever, max);
}

}  // namespace sluice::io
