#include "sluice/io/task/cancel_scope.hpp"

#include <pthread.h>

#include <mutex>
#include <new>

#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::io {

namespace {

// One for all scopes of multiplexers for several threads, because scopes are nested, and each may
// be reached from any that it is nested in. A thread may take it again: ending an operation may run
// code that cancels.
class scopes_lock {
public:
    static void lock() noexcept {
        if (held_++ == 0) mutex_.lock();
    }
    static void unlock() noexcept {
        ENSURE(held_ > 0, "released by a thread that does not hold it");
        if (--held_ == 0) mutex_.unlock();
    }

private:
    // After fork(2) the child's only thread finds it free, or its own, no matter which thread of
    // the parent held it. State that another thread was changing belongs to a multiplexer that the
    // child must not use. It is not held during the fork, because user code runs under it.
    static void renew() noexcept {
        new (&mutex_) std::mutex;
        if (held_ != 0) mutex_.lock();
    }

    static inline constinit std::mutex mutex_;
    static inline thread_local constinit int held_ = 0;
    static inline const bool is_renewed_ = ::pthread_atfork(nullptr, nullptr, renew) == 0;
};

}  // namespace

// Keeps other threads from scopes of several threads while this exists.
class cancel_scope::guard {
public:
    explicit guard(bool is_needed) noexcept : is_needed_(is_needed) {
        if (is_needed_) [[unlikely]]
            scopes_lock::lock();
    }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard() {
        if (is_needed_) [[unlikely]]
            scopes_lock::unlock();
    }

private:
    const bool is_needed_;
};

// Returns whether that is known: from its multiplexer or, before the first wait here, from the
// running one.
bool cancel_scope::is_for_one_thread() const noexcept {
    const io_multiplexer* of = multiplexer_.load(std::memory_order_relaxed);
    if (of == nullptr) of = io_multiplexer::running_here();
    return of != nullptr and not of->is_for_threads();
}

void awaited::wait(std::coroutine_handle<> waiter, io_multiplexer& on) noexcept {
    waiter_ = waiter;
    if (scope_ == nullptr) return;
    const cancel_scope::guard held(on.is_for_threads());
    auto& multiplexer = scope_->multiplexer_;
    if (multiplexer.load(std::memory_order_relaxed) == nullptr)
        multiplexer.store(&on, std::memory_order_relaxed);
    ENSURE(multiplexer.load(std::memory_order_relaxed) == &on,
           "a cancel scope belongs to one multiplexer: wrap what runs on another in uncancelled()");
    scope_->tree_.enter(*this);
}

void awaited::resume_waiter(int code) noexcept {
    if (scope_ != nullptr) {
        const cancel_scope::guard held(not scope_->is_for_one_thread());
        scope_->tree_.leave(*this);
        if (code == ECANCELED and scope_->is_cancelled()) scope_->record_cut_short();
    }
    waiter_.resume();  // `this` may be gone
}

void awaited::forget_waiter() noexcept {
    if (scope_ == nullptr) return;
    const cancel_scope::guard held(not scope_->is_for_one_thread());
    scope_->tree_.leave(*this);
}

void awaited_operation::abandon() noexcept {
    report_unreturned(unreturned_failure::waiting_frame_destroyed, "its operation is cancelled");
    forget_waiter();
    detail::engine::abandon(*target->multiplexer, *this);
}

void awaited_operation::publish() noexcept {
    value_is_empty = true;
    detail::engine::publish(*target->multiplexer, *this, initiation::automatic);
}

void awaited_operation::end() noexcept {
    detail::engine::cancel(*target->multiplexer, *this, ECANCELED);
}

void awaited_operation::signal_both(io_multiplexer& by) noexcept {
    detail::engine::give_both(by, *this, [] {}, [this] { signal_done(); });
}

cancel_scope::~cancel_scope() {
    const bool is_known = multiplexer_.load(std::memory_order_relaxed) != nullptr;
    const guard held((is_known or not tree_.is_alone()) and not is_for_one_thread());
    tree_.leave_all();
}

void cancel_scope::let_go() noexcept {
    const guard held(not is_for_one_thread());
    while (awaited* const each = tree_.pop())
        each->scope_ = nullptr;
}

void cancel_scope::cancel() noexcept {
    const guard held(not is_for_one_thread());
    tree_.cancel();
}

void cancel_scope::record_cut_short() noexcept {
    ENSURE(is_cancelled(), "only a cancellation cuts short");
    const guard held(not is_for_one_thread());
    tree_.record_cut_short();
}

void cancel_scope::nest_in(cancel_scope& outer) noexcept {
    const guard held(not is_for_one_thread() and not outer.is_for_one_thread());
    tree_.nest_in(outer.tree_);
}

}  // namespace sluice::io
