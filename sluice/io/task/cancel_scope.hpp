#pragma once

#include <atomic>
#include <coroutine>
#include <utility>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/loop/operation_record.hpp"
#include "sluice/io/loop/registration.hpp"
#include "sluice/io/task/scope_tree.hpp"

namespace sluice::io {

class cancel_scope;

/// An operation that a coroutine waits for, as its scope knows it; lives in that coroutine's frame.
class awaited {
public:
    awaited(const awaited&) = delete;
    awaited& operator=(const awaited&) = delete;

protected:
    explicit awaited(cancel_scope* within) noexcept : scope_(within) {}
    ~awaited() = default;

    /// Chooses the scope, for owners that get it only when they are awaited.
    void run_in(cancel_scope* within) noexcept { scope_ = within; }

    /// Returns whether the scope is cancelled already; the outcome is then ECANCELED, and nothing
    /// must be started.
    [[nodiscard]] bool is_refused() noexcept;

    /// Enters the scope. Must be called before it can be cancelled or be done.
    void wait(std::coroutine_handle<> waiter, io_multiplexer& on) noexcept;

    /// Ends the wait, with this errno value or 0: leaves the scope and resumes the coroutine. This
    /// may be gone then.
    void resume_waiter(int code) noexcept;

    /// Leaves the scope without resuming the coroutine.
    void forget_waiter() noexcept;

private:
    friend class cancel_scope;
    template <class Entry, list_hook<Entry> Entry::* Link, class Flag>
    friend class scope_tree;

    /// Ends the operation early: it completes with ECANCELED, from the loop, unless it was faster.
    virtual void end() noexcept = 0;

    std::coroutine_handle<> waiter_;
    cancel_scope* scope_;
    list_hook<awaited> scope_link_;
};

/// An operation that a coroutine waits for. See `operation_awaiter`.
class awaited_operation : public detail::operation_record, protected awaited {
protected:
    explicit awaited_operation(cancel_scope* within) noexcept : awaited(within) {}
    ~awaited_operation() = default;

    /// Must be called by the destructor of the derived class, before the members that the operation
    /// uses are destroyed. If the frame is destroyed while it waits, reports that, ends the
    /// operation and returns true. Blocks: until the kernel has released the buffers.
    [[nodiscard]] bool end_with_frame() noexcept {
        if (is_idle()) [[likely]]
            return false;
        abandon();
        return true;
    }

    /// Must be called once the operation is pending: the done signal resumes `waiter`. This may be
    /// gone when the call returns, if the multiplexer is for several threads.
    void wait(std::coroutine_handle<> waiter) noexcept {
        awaited::wait(waiter, *target->multiplexer);
        if (at == stage::begun) [[unlikely]]
            publish();
    }

private:
    // The value is collected when the coroutine resumes. It may resume only when its frame, which
    // may contain the buffers, is its own again: at done.
    void signal_value() noexcept final {}
    void signal_done() noexcept final { resume_waiter(error_code); }
    void signal_both(io_multiplexer& by) noexcept final;
    void end() noexcept final;
    void publish() noexcept;
    void abandon() noexcept;
};

/// A group of pending I/O that is ended together: the operations that coroutines wait for in it,
/// and those of the scopes nested in it. A task runs in its parent's scope; `in_scope`,
/// `with_deadline`, `race` and `task_group` give it its own, nested in that.
///
/// Thread safety: belongs to one multiplexer's thread: all operations in it use one multiplexer
/// (ENSURE), and another thread cancels by posting to that. If that multiplexer is for several
/// threads, any thread may call any member. Allocates: nothing.
///
/// Invariant: `tree_` has an operation from the suspension to the done signal. An operation that
/// completes at once never enters.
class cancel_scope {
public:
    cancel_scope() noexcept = default;
    cancel_scope(const cancel_scope&) = delete;
    cancel_scope& operator=(const cancel_scope&) = delete;
    /// No operation may be pending in it (ENSURE). Scopes nested in it are detached.
    ~cancel_scope();

    /// Ends all pending operations here: each completes with ECANCELED unless it was faster. Later
    /// operations here fail at once with ECANCELED, without a system call. This cannot be undone.
    /// Resumes no coroutine: the multiplexer does. Complexity: linear in the operations pending and
    /// scopes nested.
    void cancel() noexcept;

    [[nodiscard]] bool is_cancelled() const noexcept { return tree_.is_cancelled(); }

    /// Releases all pending operations here, for an owner that is destroyed before the waiting
    /// coroutines.
    void let_go() noexcept;

    /// Returns whether the cancellation ended an operation: one completed with ECANCELED, or was
    /// refused.
    [[nodiscard]] bool has_cut_short() const noexcept { return tree_.has_cut_short(); }

    /// Makes a cancellation of `outer` cancel this scope as well. A scope is nested in one other at
    /// most, until either is destroyed; nesting it there again changes nothing.
    void nest_in(cancel_scope& outer) noexcept;

private:
    friend class awaited;

    class guard;

    [[nodiscard]] bool is_for_one_thread() const noexcept;
    void record_cut_short() noexcept;

    // The multiplexer of the operations here. Atomic because of several threads; it orders no other
    // access.
    std::atomic<io_multiplexer*> multiplexer_{nullptr};
    scope_tree<awaited, &awaited::scope_link_> tree_;
};

inline bool awaited::is_refused() noexcept {
    if (scope_ == nullptr or not scope_->is_cancelled()) [[likely]]
        return false;
    scope_->record_cut_short();
    return true;
}

}  // namespace sluice::io
