#include "sluice/io/cancel_scope.hpp"

#include <mutex>

#include "sluice/io/engine.hpp"
#include "sluice/io/failure_handler.hpp"
#include "sluice/io/io_multiplexer.hpp"

namespace sluice::io {

namespace {

// One for all scopes of multiplexers for several threads, because scopes are nested, and each may be walked
// from any that it is nested in. Recursive: ending an operation may run code that cancels.
std::recursive_mutex& scopes_lock() noexcept {
    static std::recursive_mutex lock;
    return lock;
}

}  // namespace

// Keeps other threads from scopes of several threads while this exists.
class cancel_scope::guard {
public:
    explicit guard(bool is_needed) noexcept {
        if (is_needed) [[unlikely]]
            held_ = std::unique_lock(scopes_lock());
    }

private:
    std::unique_lock<std::recursive_mutex> held_;
};

// Whether that is known: by its multiplexer, or, while nothing was waited for here, by the one that runs.
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
    scope_->pending_.push_back(*this);
    // Another thread may have cancelled it since is_refused().
    if (on.is_for_threads() and scope_->is_cancelled()) end();
}

void awaited::resume_waiter(int code) noexcept {
    if (scope_ != nullptr) {
        const cancel_scope::guard held(not scope_->is_for_one_thread());
        scope_->pending_.erase(*this);
        if (code == ECANCELED and scope_->is_cancelled()) scope_->note_cut_short();
    }
    waiter_.resume();  // `this` may be gone
}

void awaited::forget_waiter() noexcept {
    if (scope_ == nullptr) return;
    const cancel_scope::guard held(not scope_->is_for_one_thread());
    scope_->pending_.erase(*this);
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
    const bool is_alone = not is_known and outer_ == nullptr and nested_.empty();
    const guard held(not is_alone and not is_for_one_thread());
    ENSURE(pending_.empty(), "a cancel scope is destroyed while operations are pending in it");
    while (cancel_scope* const inner = nested_.pop_front())
        inner->outer_ = nullptr;
    if (outer_ != nullptr) outer_->nested_.erase(*this);
}

void cancel_scope::let_go() noexcept {
    const guard held(not is_for_one_thread());
    while (awaited* const each = pending_.pop_front())
        each->scope_ = nullptr;
}

void cancel_scope::cancel_own() noexcept {
    is_cancelled_.store(true, std::memory_order_relaxed);
    // Nobody is signalled from inside, so the list stays as it is meanwhile.
    for (awaited& each : pending_)
        each.end();
}

void cancel_scope::cancel() noexcept {
    const guard held(not is_for_one_thread());
    // Without recursion: scopes may nest as deep as tasks do.
    intrusive_list<cancel_scope, &cancel_scope::walk_link_> to_cancel;
    to_cancel.push_back(*this);
    while (cancel_scope* const at = to_cancel.pop_front()) {
        if (at->is_cancelled()) continue;  // and so is all that is nested in it
        at->cancel_own();
        for (cancel_scope& inner : at->nested_)
            to_cancel.push_back(inner);
    }
}

void cancel_scope::note_cut_short() noexcept {
    const guard held(not is_for_one_thread());
    for (cancel_scope* at = this; at != nullptr and at->is_cancelled(); at = at->outer_)
        at->has_cut_short_.store(true, std::memory_order_relaxed);
}

void cancel_scope::nest_in(cancel_scope& outer) noexcept {
    const guard held(not is_for_one_thread() and not outer.is_for_one_thread());
    if (outer_ == &outer or this == &outer) return;
    ENSURE(outer_ == nullptr, "a cancel scope is nested in one other at most");
    for (const cancel_scope* at = &outer; at != nullptr; at = at->outer_)
        ENSURE(at != this, "a cancel scope cannot be nested in itself");
    outer_ = &outer;
    outer.nested_.push_back(*this);
    if (outer.is_cancelled()) cancel();
}

}  // namespace sluice::io
