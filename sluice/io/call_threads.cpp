#include "sluice/io/call_threads.hpp"

#include <new>
#include <system_error>

#include "sluice/io/signal_receiver.hpp"
#include "sluice/io/sigpipe_guard.hpp"

namespace sluice::io {

call_threads::~call_threads() {
    {
        const std::scoped_lock guard(mutex_);
        ENSURE(queue_.empty(), "calls come back before their threads go");
        stops_ = true;
    }
    has_news_.notify_all();
    for (std::thread& each : threads_)
        each.join();
}

void call_threads::submit(queued_call& one) noexcept {
    {
        const std::scoped_lock guard(mutex_);
        if (queued_ >= idle_ and threads_.size() < threads_max_) start_thread();
        if (not threads_.empty()) {
            queue_.push_back(one);
            ++queued_;
            has_news_.notify_one();
            return;
        }
    }
    one.perform();  // late is better than never
}

// With the mutex held. Where it fails, those there are have more to do.
void call_threads::start_thread() noexcept {
    const blocked_signals inherited(receivable_signals());
    try {
        threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
        return;
    } catch (const std::bad_alloc&) {
        return;
    }
}

void call_threads::work() noexcept {
    const sigpipe_guard quiet;
    std::unique_lock guard(mutex_);
    for (;;) {
        ++idle_;
        has_news_.wait(guard, [this] { return stops_ or not queue_.empty(); });
        --idle_;
        queued_call* const next = queue_.pop_front();
        if (next == nullptr) return;
        --queued_;
        guard.unlock();
        next->perform();  // after which it may be gone
        guard.lock();
    }
}

}  // namespace sluice::io
