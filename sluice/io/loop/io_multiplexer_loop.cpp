// The loop of a multiplexer, and posted items.

#include <algorithm>
#include <thread>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/loop/passes.hpp"

namespace sluice::io {

using namespace passes;

// --- posting
// ----------------------------------------------------------------------------------------------------------

void io_multiplexer::post(posted_item& item) noexcept {
    (void)posted_.push(item);
    wake_if_sleeping();
}

void io_multiplexer::let_finish() noexcept {
    // acquire: what those threads did to us comes before our end. They are a few instructions from theirs.
    while (completing_.load(std::memory_order_acquire) != 0)
        std::this_thread::yield();
}

void io_multiplexer::wake_if_sleeping() noexcept {
    // seq_cst, with the fence in prepare_to_sleep: either we see `sleeping_`, or the loop sees what was
    // pushed.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_relaxed)) backend_wake();
}

bool io_multiplexer::prepare_to_sleep() noexcept {
    ENSURE(not sleeping_.load(std::memory_order_relaxed), "one thread at a time sleeps in a multiplexer");
    sleeping_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in post()
    if (posted_.empty() and completed_elsewhere_.empty() and not backend_has_news()) {
        end_turn();
        if (sharing_ != nullptr) fall_asleep();
        return true;
    }
    sleeping_.store(false, std::memory_order_relaxed);
    return false;
}

void io_multiplexer::woke_up() noexcept {
    ENSURE(sleeping_.load(std::memory_order_relaxed), "woke up without having slept");
    if (sharing_ != nullptr) awake();
    begin_turn();
    sleeping_.store(false, std::memory_order_relaxed);  // a late wake-up only ends the next sleep early
}

io_multiplexer::work_guard::~work_guard() {
    if (multiplexer_ == nullptr) return;
    // As in complete_elsewhere(): the loop may end, and its owner destroy it.
    multiplexer_->completing_.fetch_add(1, std::memory_order_relaxed);
    // release: pairs with is_exhausted(), so that what this thread posted before is seen there.
    multiplexer_->guards_.fetch_sub(1, std::memory_order_release);
    if (not multiplexer_->is_inside()) multiplexer_->backend_wake();  // run() has to notice
    multiplexer_->completing_.fetch_sub(1, std::memory_order_release);
}

int io_multiplexer::invoke_some(int max) noexcept {
    ensure_owner();
    int count = 0;
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

// --- running
// ----------------------------------------------------------------------------------------------------------

// One pass over everything there is to do. If that is nothing, waits for something until then.
result<int> io_multiplexer::run_once(int max, time_point until) noexcept {
    int count = invoke_some(max);
    if (not timers_.empty() and count < max) {
        const int expired = expire_some(max - count);
        if (expired != 0) count += std::max(expired, signal_ready(max - count));
    }
    if (count >= max) return count;
    // To wait in the same call that looks saves a system call each time the loop runs dry.
    if (count > 0 or is_exhausted()) until = no_wait;
    if (until != no_wait and not timers_.empty()) until = std::min(until, timers_.top()->expires);
    const result<int> completed = complete(max - count, until);
    if (not completed and count == 0) [[unlikely]]
        return completed;
    return count + std::max(0, completed.value_or(0));
}

result<int> io_multiplexer::turn_once(int max, time_point until) noexcept {
    const runs_here here(*this);
    begin_turn();
    const result<int> count = run_once(max, until);
    end_turn();
    return count;
}

// Whether nothing is pending and no guard promises more. A guard that is destroyed wakes us; items posted
// under it come first.
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

result<int> io_multiplexer::try_run_until(time_point until, int max) noexcept {
    max = maximum(max);
    if (sharing_ != nullptr) return run_shared(share_of_work::all, max, until);
    for (;;) {
        const result<int> count = turn_once(max, until);
        if (not count or *count > 0) return count;
        if (is_exhausted()) return nothing_pending;
        if (max == 0 or backend_is_stalled()) return nothing_ready;
        if (until == for_ever) continue;
        if (until == no_wait or now() >= until) return try_run(max);
    }
}

result<int> io_multiplexer::try_run_for(duration within, int max) noexcept {
    return try_run_until(after(now(), within), max);
}

result<int> io_multiplexer::run(int max) noexcept {
    return try_run_until(for_ever, max);
}

}  // namespace sluice::io
