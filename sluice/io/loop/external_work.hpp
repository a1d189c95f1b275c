#pragma once

#include <optional>

#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::io {

/// A wait without a descriptor: for a lock, another thread, or a device with its own completions. A
/// sender passes one to configure_external(). Like every operation, it then has a deadline,
/// cancellation, the scope of its task, states that threads share, and the bridge to
/// std::execution, and its receiver is signalled only on the thread of its multiplexer.
///
/// Lifetime: from start() to done it is neither moved nor destroyed; it may be used again
/// afterwards.
///
/// Invariants:
///   1. begin() is called once per start(). If it returns std::nullopt, complete() is called
///      exactly once, after begin() was called; unless abandon() returns true.
///   2. end() is called only between the two, as far as the multiplexer knows: complete() may have
///      been called on another thread.
/// Thread safety: begin() and end() are called by a thread that runs, starts or cancels on the
/// multiplexer, one at a time; complete() may be called on any thread, also from within the other
/// two. Allocates: nothing.
class external_work {
public:
    external_work(const external_work&) = delete;
    external_work& operator=(const external_work&) = delete;

    /// Begins. Returns the outcome, an errno value or 0, if it is known at once, and
    /// std::nullopt if complete() follows. Unless it `may_wait`, returns ETIMEDOUT instead of
    /// std::nullopt. Blocks: no.
    [[nodiscard]] virtual std::optional<int> begin(bool may_wait) noexcept = 0;

    /// Requests, once, an early end: complete(ECANCELED) follows, now or soon, unless it was
    /// faster. It must not depend on the multiplexer's signals, unless abandon() is overridden.
    /// With several threads it may be called while a cancel_scope is being cancelled, which keeps
    /// other threads from all scopes: it must not wait for a thread that may use one. Blocks: no.
    virtual void end() noexcept = 0;

    /// Checks for completion, where a check is needed. Blocks: no.
    virtual void poll() noexcept {}

    /// Ends it at once, because its owner is destroyed. Returns whether it is over; complete()
    /// is not called then. By default it returns false, and the multiplexer waits for the
    /// completion that end() causes.
    /// Blocks: until it is over.
    [[nodiscard]] virtual bool abandon() noexcept { return false; }

protected:
    external_work() noexcept = default;
    ~external_work() = default;

    /// Completes it with an errno value or 0. This may be destroyed before the call returns.
    void complete(int code) noexcept {
        op_->error_code = code;
        detail::engine::complete_elsewhere(*op_->target->multiplexer, *op_);
    }

private:
    friend class io_multiplexer;

    detail::operation_record* op_ = nullptr;
};

/// Configures an operation to wait for `work` on a multiplexer. For the configure() of a sender.
inline void configure_external(operation& configured, io_multiplexer& on, external_work& work,
                               deadline within) noexcept {
    detail::operation_record& op = detail::record_of(configured);
    op.target = &detail::engine::no_handle(on);
    op.kind = operation_kind::external;
    op.argument = &work;
    op.limit = within;
    op.pieces = nullptr;
    op.piece_count = 0;
}

/// Returns the errno value, or 0, with which such an operation ended. For the collect() of a
/// sender.
[[nodiscard]] inline int code_of(const operation& completed) noexcept {
    return detail::record_of(completed).error_code;
}

/// Storage in a sender for a work that each start() constructs again. Copies and moves do not
/// transfer the work, so that the sender can be copied, and moved while it is idle.
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
