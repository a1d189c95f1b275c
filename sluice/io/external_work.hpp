#pragma once

#include <optional>

#include "sluice/io/io_multiplexer.hpp"

namespace sluice::io {

/// What an operation waits for that no descriptor stands for: a lock, another thread, a device with
/// completions of its own. A sender that makes one its operation's `argument`, by configure_external(), gets
/// what every operation has: a deadline, cancellation, a task's scope, states that threads share, the bridge
/// to std::execution; and its receiver is always signalled by its own multiplexer.
///
/// Lifetime: from start() to done it stays where it is; it may be used again afterwards.
///
/// Invariants:
///   1. begin() is called once per start(); if it returned no code, complete() is called exactly once, and
///   not
///      before begin() was called.
///   2. end() is called only between the two, as far as the multiplexer's thread knows: complete() may have
///      been called on another thread.
/// Thread safety: begin() and end() are called on the multiplexer's thread; complete() may be called on any
/// thread, also from within the other two. Allocates: nothing.
class external_work {
public:
    external_work(const external_work&) = delete;
    external_work& operator=(const external_work&) = delete;

    /// Begins. Returns the outcome, an errno value or 0, if it is known at once; nothing if complete()
    /// follows. If it `may_wait` not, and would have to, it returns ETIMEDOUT. Blocks: no.
    [[nodiscard]] virtual std::optional<int> begin(bool may_wait) noexcept = 0;

    /// Asks, once, for an early end: complete(ECANCELED) follows, now or soon, unless it was faster. It must
    /// not depend on the multiplexer's signals, unless abandon() is overridden. Blocks: no.
    virtual void end() noexcept = 0;

    /// Looks whether it is complete, for those that find out only when they look. Blocks: no.
    virtual void poll() noexcept {}

    /// Ends it at once, for an owner that goes: returns whether it has, and complete() will not be called. By
    /// default it has not, and the multiplexer waits for what end() brings. Blocks: as long as it takes.
    [[nodiscard]] virtual bool abandon() noexcept { return false; }

protected:
    external_work() noexcept = default;
    ~external_work() = default;

    /// It is complete, with this errno value or 0. This may be gone when the call returns.
    void complete(int code) noexcept {
        op_->error_code = code;
        op_->target->multiplexer->complete_elsewhere(*op_);
    }

private:
    friend class io_multiplexer;

    operation* op_ = nullptr;
};

/// Has `op` wait for `work` on a multiplexer: for a sender's configure().
inline void configure_external(operation& op, io_multiplexer& on, external_work& work,
                               deadline within) noexcept {
    op.target = &on.no_handle();
    op.kind = operation_kind::external;
    op.argument = &work;
    op.limit = within;
    op.pieces = nullptr;
    op.piece_count = 0;
}

/// Room for a work that is made anew for each start(), so that its sender can be copied and moved while it is
/// idle: neither takes the work along.
template <class Work>
class work_room {
public:
    work_room() noexcept = default;
    work_room(const work_room&) noexcept {}
    work_room& operator=(const work_room&) noexcept { return *this; }
    ~work_room() = default;

    template <class... Arguments>
    Work& emplace(Arguments&&... arguments) noexcept {
        return work_.emplace(std::forward<Arguments>(arguments)...);
    }
    [[nodiscard]] Work& operator*() noexcept { return *work_; }

private:
    std::optional<Work> work_;
};

}  // namespace sluice::io
