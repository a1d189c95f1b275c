#pragma once

#include <coroutine>
#include <utility>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/operation.hpp"

namespace sluice::io {

class cancel_scope;

/// An operation some coroutine waits for; lives in that coroutine's frame. See `operation_awaiter`.
class awaited_operation : public operation {
protected:
    explicit awaited_operation(cancel_scope* within) noexcept : scope_(within) {}
    ~awaited_operation() = default;

    /// Whether the scope is cancelled already; the outcome is then ECANCELED, and nothing is to be started.
    [[nodiscard]] bool is_refused() noexcept;

    /// To be called once the operation is pending: the done signal resumes `waiter`.
    void wait(std::coroutine_handle<> waiter) noexcept;

private:
    friend class cancel_scope;

    // The value is collected when the coroutine goes on, and it may go on only when its frame, in which the
    // buffers may be, is its own again: at done.
    void signal_value() noexcept final {}
    void signal_done() noexcept final;

    std::coroutine_handle<> waiter_;
    cancel_scope* scope_;
    list_hook<awaited_operation> scope_link_;
};

/// A group of pending i/o that is ended together: the operations coroutines wait for in it, and those of the
/// scopes nested in it. A task runs in its parent's scope; `in_scope`, `with_deadline`, `race` and
/// `task_group` give it one of its own, nested in that.
///
/// Thread safety: belongs to one multiplexer's thread: all operations in it go through one multiplexer
/// (ENSURE), and another thread cancels by posting to that. Allocates: nothing.
///
/// Invariants:
///   1. A scope in a cancelled scope is cancelled.
///   2. `operations_` holds those that are pending, from suspending to the done signal; what is done at once
///      never enters.
class cancel_scope {
public:
    cancel_scope() noexcept = default;
    cancel_scope(const cancel_scope&) = delete;
    cancel_scope& operator=(const cancel_scope&) = delete;
    /// No operation may be pending in it (ENSURE). Scopes nested in it are set free.
    ~cancel_scope();

    /// Ends all that is pending here: it completes with ECANCELED unless it was faster. Whatever is begun
    /// here later fails at once with ECANCELED, without a system call. There is no way back. Resumes nobody:
    /// that is left to the multiplexer. Complexity: linear in the operations pending and scopes nested.
    void cancel() noexcept;

    [[nodiscard]] bool is_cancelled() const noexcept { return is_cancelled_; }

    /// Whether cancelling did end something: an operation completed with ECANCELED, or was refused.
    [[nodiscard]] bool has_cut_short() const noexcept { return has_cut_short_; }

    /// Has this scope cancelled when `outer` is. A scope is nested in one other at most, until either is
    /// destroyed; to nest it there again changes nothing.
    void nest_in(cancel_scope& outer) noexcept;

private:
    friend class awaited_operation;

    void cancel_own() noexcept;
    void note_cut_short() noexcept;

    bool is_cancelled_ = false;
    bool has_cut_short_ = false;
    cancel_scope* outer_ = nullptr;
    io_multiplexer* multiplexer_ = nullptr;  // of the operations that were pending here
    intrusive_list<awaited_operation, &awaited_operation::scope_link_> operations_;
    list_hook<cancel_scope> sibling_link_;
    list_hook<cancel_scope> walk_link_;  // only within cancel()
    intrusive_list<cancel_scope, &cancel_scope::sibling_link_> nested_;
};

inline bool awaited_operation::is_refused() noexcept {
    if (scope_ == nullptr or not scope_->is_cancelled()) [[likely]]
        return false;
    scope_->note_cut_short();
    return true;
}

}  // namespace sluice::io
