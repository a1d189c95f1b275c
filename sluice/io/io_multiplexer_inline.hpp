#pragma once

#include <concepts>
#include <new>
#include <type_traits>
#include <utility>

#include "sluice/io/io_multiplexer.hpp"

// The definitions of io_multiplexer's templates, and of what has to be inlined; included by
// io_multiplexer.hpp, behind the class.

namespace sluice::io {

inline bool io_multiplexer::start_or_finish(operation& op) noexcept {
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

inline void io_multiplexer::finish(operation& op) noexcept {
    if (not op.notification_pending) --queued_;
    if (op.timer_link.is_linked()) disarm_timer(op);
    if (op.cancel_code != 0 and op.error_code == ECANCELED) op.error_code = op.cancel_code;
    op.at = operation::stage::ready;
    ready_.push_back(op);
    ++finished_;
}

inline void io_multiplexer::finish_directly(operation& op) noexcept {
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
    // What is marked again meanwhile (more to do than one pass allows) waits for the next pass.
    dirty_list now = std::move(dirty_);
    while (registration::half* half = now.pop_front()) {
        if (half->queue.empty()) continue;
        if (serve_half(*half)) arm(*half);
    }
}

}  // namespace sluice::io
