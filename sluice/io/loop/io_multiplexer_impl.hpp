#pragma once

// The inline functions of io_multiplexer. io_multiplexer.hpp includes this at its end.

#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::io {

inline bool io_multiplexer::start(detail::operation_record& op, initiation how) noexcept {
    if (not is_inside()) [[unlikely]]
        return start_outside(op, how);
    const bool is_known = how == initiation::batched ? begin_batched(op) : begin(op, how);
    if (not is_known) return false;
    if (not signalling_) [[likely]]
        return true;
    ready_.push_back(op);
    return false;
}

inline bool io_multiplexer::refuse(detail::operation_record& op) noexcept {
    if (not is_inside()) [[unlikely]]
        return refuse_outside(op);
    reset(op);
    op.error_code = ECANCELED;
    op.at = detail::operation_record::stage::ready;
    if (not signalling_) return true;
    ready_.push_back(op);
    return false;
}

inline bool io_multiplexer::start_or_finish(detail::operation_record& op) noexcept {
    if (not is_inside()) [[unlikely]]
        return start_or_finish_outside(op);
    if (not begin(op, initiation::automatic)) return false;
    if (inline_left_ <= 0) [[unlikely]] {
        // Its turn comes after those of others: something always ready must not starve the rest.
        ready_.push_back(op);
        return false;
    }
    --inline_left_;
    op.has_completed = true;
    retire(op);
    return true;
}

inline void io_multiplexer::hold(registration& attached) noexcept {
    if (sharing_ == nullptr) ensure_owner();
    const entry in(*this);
    ++pending_;
    ++attached.pending;
}

inline void io_multiplexer::release(registration& attached) noexcept {
    const entry in(*this);
    ENSURE(pending_ != 0 and attached.pending != 0, "released more often than held");
    --pending_;
    --attached.pending;
}

inline void io_multiplexer::finish(detail::operation_record& op) noexcept {
    if (not op.notification_pending) --queued_;
    if (op.timer_link.is_linked()) disarm_timer(op);
    if (op.cancel_code != 0 and op.error_code == ECANCELED) op.error_code = op.cancel_code;
    op.at = detail::operation_record::stage::ready;
    ready_.push_back(op);
    ++finished_;
}

inline void io_multiplexer::finish_directly(detail::operation_record& op) noexcept {
    const bool waits_its_turn = not ready_.empty() or signalling_ or not op.limit.is_none();
    if (waits_its_turn or direct_left_ <= 0 or inline_left_ <= 0) [[unlikely]] {
        finish(op);
        return;
    }
    --direct_left_;
    --queued_;
    signalling_ = true;
    op.signal_both(*this);
    signalling_ = false;
}

template <class Value, class Done>
void io_multiplexer::signal_both(detail::operation_record& op, Value&& value, Done&& done) noexcept {
    signalling_ = true;
    give_both(op, value, done);
    signalling_ = false;
}

template <class Value, class Done>
void io_multiplexer::give_both(detail::operation_record& op, Value&& value, Done&& done) noexcept {
    op.at = detail::operation_record::stage::valued;
    op.has_completed = true;
    value();
    retire(op);
    done();  // `op` may be gone, or started again
}

template <std::invocable Invocable>
result<void> io_multiplexer::post(Invocable&& invocable) noexcept {
    struct node final : posted_item {
        explicit node(Invocable&& from) : callable(std::forward<Invocable>(from)) {}
        void invoke() noexcept override {
            std::decay_t<Invocable> taken = std::move(callable);
            delete this;  // first, so that the callable may do anything, even destroy the multiplexer's user
            std::move(taken)();
        }
        std::decay_t<Invocable> callable;
    };
    static_assert(std::is_nothrow_constructible_v<std::decay_t<Invocable>, Invocable>,
                  "post: moving the callable must not throw");
    auto* const fresh = new (std::nothrow) node(std::forward<Invocable>(invocable));
    if (fresh == nullptr) return failure({ENOMEM, "post"});
    post(*fresh);
    return {};
}

template <class Arm>
void io_multiplexer::serve_dirty(Arm&& arm) noexcept {
    // A half that is marked again in the meantime has more to do than one pass allows. It waits for the next.
    dirty_list now = std::move(dirty_);
    while (registration::half* half = now.pop_front()) {
        if (half->queue.empty()) continue;
        if (serve_half(*half)) arm(*half);
    }
}

}  // namespace sluice::io
