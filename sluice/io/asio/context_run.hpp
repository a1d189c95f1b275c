#pragma once

#include "sluice/io/asio/context.hpp"
#include "sluice/io/asio/core.hpp"
#include "sluice/io/best_available.hpp"

// The members of asio_context; for asio_context.hpp, not for users.
namespace sluice::io {

/// Ends a wait of the multiplexer, and makes it call destroy_unowned(). Owned by its context; if
/// the context is destroyed while this is in the multiplexer's queue, it owns itself.
class asio_context::waker final : public posted_item {
public:
    explicit waker(asio_context& of) noexcept : context_(&of) {}

    void post() noexcept {
        // acq_rel: pairs with invoke(), so that what was done before a post that comes too early to
        // be one more is seen there.
        if (not is_posted_.exchange(true, std::memory_order_acq_rel)) context_->multiplexer_->post(*this);
    }
    void let_go() noexcept {
        context_ = nullptr;
        if (not is_posted_.load(std::memory_order_acquire)) delete this;
    }

private:
    void invoke() noexcept override {
        if (context_ == nullptr) {
            delete this;
            return;
        }
        (void)is_posted_.exchange(false, std::memory_order_acq_rel);  // pairs with post()
        context_->destroy_unowned();
    }

    asio_context* context_;
    std::atomic<bool> is_posted_{false};
};

struct asio_context::lists {
    // Used by the multiplexer's thread, and by another under the mutex while no thread runs it;
    // with several threads, guarded by the mutex here.
    std::mutex enlisted_mutex;
    intrusive_list<detail::asio_core_base, &detail::asio_core_base::enlisted_link> enlisted;
    // Guarded by the context's mutex. With several threads no object has to wait for
    // another to destroy it.
    intrusive_list<detail::asio_core_base, &detail::asio_core_base::unowned_link> unowned;
};

inline std::unique_ptr<io_multiplexer> asio_context::make_multiplexer(int concurrency_hint) {
    // One for several may also be run, and destroyed, by one thread after the other.
    constexpr std::size_t several = 2;
    auto made = best_available(concurrency_hint == 1 ? 1 : several);
    if (not made) throw std::system_error(std::error_code(made.error()), made.error().operation());
    return std::move(*made);
}

inline asio_context::asio_context(io_multiplexer& multiplexer, std::unique_ptr<io_multiplexer> owned)
    : owned_(std::move(owned)),
      multiplexer_(&multiplexer),
      lists_(std::make_unique<lists>()),
      waker_(new waker(*this)) {
    asio::make_service<detail::asio_home>(*this, *this);
}

inline asio_context::asio_context(int concurrency_hint) : asio_context(make_multiplexer(concurrency_hint)) {}

inline asio_context::asio_context(std::unique_ptr<io_multiplexer> owned)
    : asio_context(*owned, std::move(owned)) {}

inline asio_context::~asio_context() {
    discard_pending();
    shutdown();  // destroys the functions that strands hold, and the objects that these own
    discard_pending();
    destroy();
    waker_->let_go();
}

inline void asio_context::discard_pending() noexcept {
    destroy_unowned();
    // acquire: pairs with end_outstanding() on a thread that has run this.
    if (outstanding_.load(std::memory_order_acquire) == 0) return;
    ENSURE(
        may_be_run_here(),
        "an asio_context with pending operations is destroyed by another thread than ran it: let it run out "
        "of work first, or give it a multiplexer for several threads");
    is_discarding_ = true;
    while (outstanding_.load(std::memory_order_relaxed) != 0) {
        for (detail::asio_core_base& each : lists_->enlisted)
            each.cancel_pending();
        ENSURE(multiplexer_->run(1).value_or(0) > 0, "operations are pending, and nothing can end them");
    }
    is_discarding_ = false;
}

// --- running

inline asio_context::count_type asio_context::run_some(count_type max, time_point until) {
    ENSURE(not running_in_this_thread(), "run() inside a handler");
    runner self(*this);
    if (not becomes_runner(self, until)) return 0;
    result<int> last = 1;
    while (last.value_or(0) > 0 and self.thrown.empty() and not stopped() and self.handlers_run < max)
        last = step(until);
    // Others detect that by themselves.
    if (last.has_value() and *last == io_multiplexer::nothing_pending) become_stopped();
    if (const std::exception_ptr thrown = leave(self)) std::rethrow_exception(thrown);
    if (not last) throw std::system_error(std::error_code(last.error()), last.error().operation());
    return self.handlers_run;
}

// One item at a time, so that no handler runs between one that throws and the return to the caller.
inline result<int> asio_context::step(time_point until) noexcept {
    if (until == time_point::min()) return multiplexer_->try_run(1);
    // Work that is always ready must not delay the end.
    if (until != time_point::max() and multiplexer_->now() >= until) return io_multiplexer::nothing_ready;
    return multiplexer_->try_run_until(until, 1);
}

// With a multiplexer for one thread, only the first thread gets a turn; others wait until
// the context is stopped.
inline bool asio_context::becomes_runner(runner& self, time_point until) {
    std::unique_lock lock(mutex_);
    const auto has_turn = [this] {
        return multiplexer_->is_for_threads() or (runners_ == 0 and may_be_run_here());
    };
    const auto is_over = [&] { return stopped() or has_turn(); };
    if (until == time_point::max()) {
        has_changed_.wait(lock, is_over);
    } else if (until != time_point::min()) {
        has_changed_.wait_until(lock, until, is_over);
    }
    if (stopped() or not has_turn()) return false;
    ++runners_;
    is_claimed_ = true;
    self.thrown = std::exchange(thrown_, {});
    return true;
}

inline bool asio_context::may_be_run_here() const noexcept {
    return multiplexer_->is_for_threads() or multiplexer_->is_owner() or not is_claimed_;
}

// Returns the exception to throw. From here on everything belongs to the next runner.
inline std::exception_ptr asio_context::leave(runner& self) noexcept {
    std::exception_ptr first;
    bool others_sleep = false;
    {
        const std::scoped_lock lock(mutex_);
        if (not self.thrown.empty()) {
            first = self.thrown.front();
            thrown_.insert(thrown_.end(), self.thrown.begin() + 1, self.thrown.end());
        }
        destroy_unowned_locked();
        others_sleep = --runners_ > 0 and stopped();
        has_changed_.notify_all();
    }
    // One item wakes one thread, so each thread that leaves wakes the next.
    if (others_sleep) waker_->post();
    return first;
}

inline void asio_context::become_stopped() noexcept {
    const std::scoped_lock lock(mutex_);
    stopped_.store(true, std::memory_order_release);  // pairs with stopped()
    has_changed_.notify_all();
}

inline void asio_context::stop() noexcept {
    become_stopped();
    // A runner that calls this leaves by itself. Others may sleep, also in the multiplexer's own
    // run(), where they are not counted.
    if (multiplexer_->is_for_threads() or not multiplexer_->is_owner()) waker_->post();
}

// --- fork

// The services come first: signal sets replace descriptors that the multiplexer then watches again.
inline void asio_context::notify_fork(fork_event event) {
    using step = io_multiplexer::fork_step;
    asio::execution_context::notify_fork(event);
    const step next = event == fork_prepare ? step::prepare
                      : event == fork_child ? step::child
                                            : step::parent;
    detail::asio_throw_if(detail::asio_outcome(multiplexer_->notify_fork(next)), "notify_fork");
}

// --- what has operations on the loop

inline void asio_context::enlist(detail::asio_core_base& one) noexcept {
    if (one.is_enlisted) return;
    one.is_enlisted = true;
    std::unique_lock lock(lists_->enlisted_mutex, std::defer_lock);
    if (multiplexer_->is_for_threads()) lock.lock();
    lists_->enlisted.push_back(one);
}

inline void asio_context::delist(detail::asio_core_base& one) noexcept {
    if (not one.is_enlisted) return;
    std::unique_lock lock(lists_->enlisted_mutex, std::defer_lock);
    if (multiplexer_->is_for_threads()) lock.lock();
    lists_->enlisted.erase(one);
}

inline void asio_context::destroy_core(detail::asio_core_base& one) noexcept {
    if (multiplexer_->is_for_threads() or multiplexer_->is_owner()) {
        delete &one;
        return;
    }
    const std::scoped_lock lock(mutex_);
    if (runners_ == 0) {
        delete &one;
        return;
    }
    lists_->unowned.push_back(one);
    waker_->post();
}

inline void asio_context::destroy_unowned() noexcept {
    const std::scoped_lock lock(mutex_);
    destroy_unowned_locked();
}

inline void asio_context::destroy_unowned_locked() noexcept {
    while (detail::asio_core_base* const one = lists_->unowned.pop_front())
        delete one;
}

}  // namespace sluice::io
