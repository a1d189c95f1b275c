// The loop of a multiplexer for several threads; see io_multiplexer_threads.cpp and leadership.hpp.

#include <algorithm>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/loop/io_multiplexer_sharing.hpp"
#include "sluice/io/loop/passes.hpp"

namespace sluice::io {

using detail::operation_record;

using namespace passes;

// --- between threads
// -------------------------------------------------------------------------------------------------

bool io_multiplexer::has_work() const noexcept {
    return not(ready_.empty() and posted_.empty() and completed_elsewhere_.empty());
}

bool io_multiplexer::is_exhausted_shared() const noexcept {
    return sharing_->busy == 0 and is_exhausted();
}

// Makes a thread of run… look for work.
void io_multiplexer::notify_one() noexcept {
    ENSURE(is_inside(), "a thread that is outside wakes others");
    sharing_->threads.notify_one([this] { backend_wake(); });
}

// After a thread that may not be in run… has changed the engine's state: the steps of the leader
// before it sleeps.
void io_multiplexer::publish_work() noexcept {
    ENSURE(is_inside(), "a thread that is outside reads the engine");
    const sharing& all = *sharing_;
    if (all.threads.is_asleep()) {
        backend_flush();
        if (not timers_.empty() and timers_.top()->expires < all.leader_until) backend_wake();
    }
    // A thread of run… checks by itself, when the receiver or item that it runs has returned.
    if (looping_ != this and (has_work() or is_exhausted_shared())) notify_one();
}

// Before a thread leaves run…, where it would have found the remaining work.
void io_multiplexer::hand_off() noexcept {
    ENSURE(is_inside(), "work is handed on by a thread that is outside");
    sharing_->threads.hand_off(has_work() or is_exhausted_shared(), [this] { backend_wake(); });
}

// --- running
// -------------------------------------------------------------------------------------------------

// Waits to be woken.
void io_multiplexer::follow(time_point until) noexcept {
    ENSURE(is_inside(), "a thread that is outside begins to follow");
    leadership<std::condition_variable>::follower self;
    sharing_->threads.follow(self);
    owner_.store(nullptr, std::memory_order_relaxed);
    {
        std::unique_lock held(sharing_->lock, std::adopt_lock);
        const auto is_woken = [&self] { return self.is_woken; };
        if (until == forever) {
            self.signal.wait(held, is_woken);
        } else {
            (void)self.signal.wait_until(held, until, is_woken);
        }
        (void)held.release();
    }
    owner_.store(&thread_mark_, std::memory_order_relaxed);
    sharing_->threads.stop_following(self);
}

result<void> io_multiplexer::wait_shared(time_point until) noexcept {
    sharing& all = *sharing_;
    if (all.threads.has_leader()) {
        follow(until);
        return {};
    }
    all.threads.lead();
    all.leader_until = timers_.empty() ? until : std::min(until, timers_.top()->expires);
    const result<void> asked = backend_complete(all.leader_until);
    ENSURE(is_inside() and all.threads.has_leader() and not all.threads.is_asleep(),
           "the leader returns from the kernel awake, and with the lock");
    all.threads.stop_leading();
    return asked;
}

int io_multiplexer::invoke_some_shared(int max) noexcept {
    int count = 0;
    max = std::min(max, limits::posted_items_per_pass_max);
    while (count < max) {
        posted_item* const item = posted_.pop();
        if (item == nullptr) break;
        sharing_->threads.share_work(has_work());
        invoke_shared(*item);
        ++count;
    }
    return count;
}

int io_multiplexer::signal_some_shared(int max) noexcept {
    int count = 0;
    max = std::min(max, limits::completions_per_pass_max);
    constexpr int signals_without_backend_max = 16;
    while (count < max) {
        take_completed_elsewhere();
        operation_record* const op = ready_.pop_front();
        if (op == nullptr) break;
        sharing_->threads.share_work(has_work());
        signal_shared(*op);
        ++count;
        const bool is_long = count % signals_without_backend_max == 0 and queued_ != 0;
        if (is_long and not sharing_->threads.is_asleep())
            (void)backend_complete(no_wait);  // the next call returns an error
    }
    return count;
}

// One pass over all available work. If there is none, waits until `until`.
result<int> io_multiplexer::pass_shared(share_of_work what, int max, time_point until) noexcept {
    ENSURE(is_inside(), "a pass is made by a thread that is outside");
    int count = 0;
    if (what == share_of_work::posted) return invoke_some_shared(max);
    if (what == share_of_work::all) count = invoke_some_shared(max);
    if (what != share_of_work::io) {
        const int expired = expire_some(std::min(max - count, limits::completions_per_pass_max));
        if (what == share_of_work::timers)
            return expired == 0 ? idle_value() : std::max(expired, signal_some_shared(max));
    }
    take_completed_elsewhere();
    const bool is_idle = count == 0 and ready_.empty();
    result<void> asked;
    if (is_idle and until != no_wait and not is_exhausted_shared()) {
        asked = wait_shared(until);
    } else {
        // A thread that sleeps in the kernel sees ready operations there before this one does.
        const bool is_anothers = sharing_->threads.is_asleep() and until != no_wait;
        constexpr int passes_without_backend_max = 4;
        const bool is_due = ready_.empty() or ++passes_without_backend_ >= passes_without_backend_max;
        if (queued_ != 0 and not is_anothers and is_due) {
            passes_without_backend_ = 0;
            asked = backend_complete(no_wait);
        }
    }
    count += signal_some_shared(max - count);
    if (count > 0) return count;
    if (not asked) [[unlikely]]
        return failure(asked.error());
    return idle_value();
}

result<int> io_multiplexer::run_shared(share_of_work what, int max, time_point until,
                                       const bool* done) noexcept {
    ENSURE(max == 0 or not is_in_user_code(),
           "complete_io and run must not be called from a receiver; nor, with several threads, from an item");
    const runs_here here(*this);
    const io_multiplexer* const looping_before = std::exchange(looping_, this);
    const entry in(*this);
    result<int> count = nothing_ready;
    // Read after every wait for the lock and before this thread waits: finish_run() wakes
    // the waiting threads.
    const auto is_done = [done] { return done != nullptr and * done; };
    for (bool goes_on = max != 0 and not is_done(); goes_on;) {
        count = pass_shared(what, max, until);
        if (not count or *count > 0 or what != share_of_work::all) break;
        count = is_exhausted_shared() ? nothing_pending : nothing_ready;
        const bool is_over = until == no_wait or (until != forever and now() >= until);
        goes_on = *count != nothing_pending and not is_over and not is_done();
    }
    hand_off();
    looping_ = looping_before;
    return count;
}

void io_multiplexer::run_until(const bool& done) noexcept {
    const auto is_done = [&] {
        const entry in(*this);
        return done;
    };
    while (not is_done()) {
        const result<int> ran = run_shared(share_of_work::all, passes::maximum(unlimited), forever, &done);
        if (not ran) [[unlikely]]
            report_unreturned(unreturned_failure::loop_cannot_run, ran.error().message().c_str());
    }
}

void io_multiplexer::finish_run(bool& done) noexcept {
    const entry in(*this);
    ENSURE(not done, "a run ends once");
    done = true;
    // Wakes all, because the thread that waits for it is unknown.
    while (sharing_->threads.wake_another()) {}
    if (sharing_->threads.is_asleep()) backend_wake();
}

}  // namespace sluice::io
