#include "sluice/io/task/call_threads.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "sluice/io/call/signal_set.hpp"
#include "sluice/io/call/sigpipe_guard.hpp"

namespace sluice::io {
namespace {

// The phase of a thread. Only `calling` may become `abandoned`, by the destructor.
enum class phase : std::uint8_t { idle, calling, returned, abandoned };

struct worker {
    std::thread thread;
    std::atomic<phase> at{phase::idle};
    clock_source::steady_time began;  // when the call began; guarded by the mutex
};

}  // namespace

struct call_threads::shared_state {
    explicit shared_state(const call_threads_options& chosen)
        : options(chosen), workers(chosen.threads_max) {}

    [[nodiscard]] clock_source::steady_time now() const noexcept {
        return options.clock != nullptr ? options.clock->steady_now() : std::chrono::steady_clock::now();
    }
    void work(worker& self) noexcept;

    const call_threads_options options;
    std::vector<worker> workers;  // the first `started` of them exist

    std::mutex mutex;  // guards the following members
    std::condition_variable has_news;
    std::condition_variable has_stopped;  // a thread ends
    intrusive_list<queued_call, &queued_call::link_> queue;
    std::size_t queued = 0;  // calls that have not begun
    std::size_t idle = 0;    // threads that wait for a call, or were woken for one
                             // and do not have it yet
    std::size_t started = 0;
    std::size_t ended = 0;
    std::uint64_t completed = 0;
    bool stops = false;
};

call_threads::call_threads(const call_threads_options& options)
    : state_(std::make_shared<shared_state>(options)) {
    ENSURE(options.threads_max != 0);
}

call_threads::~call_threads() {
    shared_state& state = *state_;
    std::size_t own = 0;  // this thread, if it is one of them
    {
        std::unique_lock guard(state.mutex);
        state.stops = true;
        state.has_news.notify_all();
        for (std::size_t i = 0; i != state.started; ++i)
            own += state.workers[i].thread.get_id() == std::this_thread::get_id() ? 1U : 0U;
        (void)state.has_stopped.wait_for(guard, state.options.stop_wait_max,
                                         [&] { return state.ended + own == state.started; });
        const bool all_have_ended = state.ended + own == state.started;
        ENSURE(not all_have_ended or own != 0 or state.queue.empty(),
               "calls come back before their threads go");
        // No thread becomes free in time: the queued calls are never carried out.
        while (not all_have_ended and state.queue.pop_front() != nullptr)
            --state.queued;
    }
    for (std::size_t i = 0; i != state.started; ++i) {
        worker& each = state.workers[i];
        phase expected = phase::calling;
        // acq_rel: pairs with the exchange in work(). The first of the two decides whether the
        // thread reports the end of the call to its caller.
        const bool is_own = each.thread.get_id() == std::this_thread::get_id();
        if (is_own or each.at.compare_exchange_strong(expected, phase::abandoned, std::memory_order_acq_rel))
            each.thread.detach();
        else
            each.thread.join();
    }
}

void call_threads::submit(queued_call& one) noexcept {
    if (state_->options.executor != nullptr) return state_->options.executor->submit(one);
    {
        const std::scoped_lock guard(state_->mutex);
        if (state_->queued >= state_->idle and state_->started < state_->options.threads_max)
            start_thread(state_);
        if (state_->started != 0) {
            state_->queue.push_back(one);
            ++state_->queued;
            state_->has_news.notify_one();
            return;
        }
    }
    if (one.carry_out()) one.come_back();  // late is better than never
}

bool call_threads::cancel(queued_call& one) noexcept {
    if (state_->options.executor != nullptr) return state_->options.executor->cancel(one);
    const std::scoped_lock guard(state_->mutex);
    if (not one.link_.is_linked()) return false;
    state_->queue.erase(one);
    ENSURE(state_->queued != 0, "more calls are queued than were counted");
    --state_->queued;
    return true;
}

result<void> call_threads::start_first_thread() noexcept {
    if (state_->options.executor != nullptr) return {};
    const std::scoped_lock guard(state_->mutex);
    if (state_->started == 0) start_thread(state_);
    if (state_->started == 0) return failure({EAGAIN, "start a thread"});
    return {};
}

// Called with the mutex held. If it fails, the existing threads have more to do.
void call_threads::start_thread(const std::shared_ptr<shared_state>& state) noexcept {
    const blocked_signals inherited(receivable_signals());
    ENSURE(state->started < state->workers.size(), "more threads than were allowed");
    worker& next = state->workers[state->started];
    try {
        next.thread = std::thread([state, &next] { state->work(next); });
    } catch (const std::system_error&) {
        return;
    } catch (const std::bad_alloc&) {
        return;
    }
    ++state->started;
}

void call_threads::shared_state::work(worker& self) noexcept {
    const sigpipe_guard quiet;
    std::unique_lock guard(mutex);
    for (;;) {
        ++idle;
        has_news.wait(guard, [this] { return stops or not queue.empty(); });
        --idle;
        queued_call* const next = queue.pop_front();
        if (next == nullptr) break;
        ENSURE(queued != 0 and self.at.load(std::memory_order_relaxed) == phase::idle,
               "a thread that waits takes a call that waits");
        --queued;
        self.began = now();
        // Pairs with the destructor's exchange.
        self.at.store(phase::calling, std::memory_order_release);
        guard.unlock();
        const bool comes_back = next->carry_out();
        // acq_rel: pairs with the destructor's exchange.
        if (self.at.exchange(phase::returned, std::memory_order_acq_rel) == phase::abandoned) return;
        if (comes_back) next->come_back();  // it may be gone after this
        guard.lock();
        ++completed;
        self.at.store(phase::idle, std::memory_order_relaxed);  // under the mutex
    }
    ++ended;
    ENSURE(ended <= started and stops, "threads end when all are to");
    has_stopped.notify_all();
}

call_statistics call_threads::statistics() const noexcept {
    if (state_->options.executor != nullptr) return state_->options.executor->statistics();
    const std::scoped_lock guard(state_->mutex);
    call_statistics now{.queued = state_->queued, .threads = state_->started, .completed = state_->completed};
    std::optional<clock_source::steady_time> oldest;
    for (std::size_t i = 0; i != state_->started; ++i) {
        const worker& each = state_->workers[i];
        // Set under the mutex.
        if (each.at.load(std::memory_order_relaxed) != phase::calling) continue;
        ++now.running;
        oldest = oldest ? std::min(*oldest, each.began) : each.began;
    }
    if (oldest) now.oldest_age = state_->now() - *oldest;
    return now;
}

}  // namespace sluice::io
