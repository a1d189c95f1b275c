#pragma once

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

#include "sluice/io/loop/engine.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/task/cancel_scope.hpp"

namespace sluice::io {

/// Waits, in a coroutine, for the operation of a sender; `co_await async_read(…)` creates one. The
/// state of the operation is in the coroutine's frame.
///
/// Lazy: begins when awaited. An operation that can complete at once does so without suspending, as
/// long as the multiplexer's budget lasts (limits::inline_completions_max). After that the
/// coroutine takes its turn after the others. Resumed by the multiplexer, on its thread, after the
/// done signal. Destroying the frame while it waits is an error, reported to the failure handler,
/// because the kernel may be writing into the buffers; cancel its scope and wait instead. Thread
/// safety: the multiplexer's thread only. Allocates, locks, throws: never.
template <sender Sender>
class [[nodiscard]] operation_awaiter final : private awaited_operation {
public:
    explicit operation_awaiter(Sender&& what, cancel_scope* within = nullptr) noexcept
        : awaited_operation(within), sender_(std::move(what)) {}
    operation_awaiter(const operation_awaiter&) = delete;
    operation_awaiter& operator=(const operation_awaiter&) = delete;
    ~operation_awaiter() {
        if (end_with_frame()) [[unlikely]]
            (void)sender_.collect(*this);  // undoes the registrations of configure()
    }

    // Inlined by force: after a system call every return is mispredicted (see system_call.hpp).
    [[nodiscard, gnu::always_inline]] bool await_ready() noexcept {
        sender_.configure(*this);
        if (is_refused()) [[unlikely]] {
            error_code = ECANCELED;
            return true;
        }
        return detail::engine::start_or_finish(sender_.multiplexer(), *this);
    }
    void await_suspend(std::coroutine_handle<> waiter) noexcept { wait(waiter); }
    [[nodiscard]] typename Sender::result_type await_resume() noexcept { return sender_.collect(*this); }

private:
    Sender sender_;
};

/// Makes every sender awaitable, in any coroutine. It has no scope, so it cannot be cancelled.
template <sender Sender>
[[nodiscard]] operation_awaiter<Sender> operator co_await(Sender what) noexcept {
    return operation_awaiter<Sender>(std::move(what));
}

/// The operand of `co_await current_scope`, which returns the coroutine's cancel_scope, or null if
/// it has none.
struct current_scope_t {};
inline constexpr current_scope_t current_scope{};

/// A base for promise types whose coroutines run in a cancel scope. Not for users of `task`.
class scoped_promise {
public:
    [[nodiscard]] cancel_scope* scope() const noexcept { return scope_; }

    template <sender Sender>
    [[nodiscard]] operation_awaiter<Sender> await_transform(Sender what) noexcept {
        return operation_awaiter<Sender>(std::move(what), scope_);
    }
    [[nodiscard]] auto await_transform(current_scope_t) noexcept {
        struct answer {
            cancel_scope* scope;
            [[nodiscard]] static constexpr bool await_ready() noexcept { return true; }
            static constexpr void await_suspend(std::coroutine_handle<>) noexcept {}
            [[nodiscard]] cancel_scope* await_resume() const noexcept { return scope; }
        };
        return answer{scope_};
    }
    template <class Other>
        requires(not sender<std::remove_cvref_t<Other>>)
    [[nodiscard]] Other&& await_transform(Other&& other) noexcept {
        return std::forward<Other>(other);
    }

    /// Sets the multiplexer on whose thread the coroutine starts and its awaiter resumes; before
    /// the start. Null: unknown.
    void set_home(io_multiplexer* home) noexcept { home_ = place_ = home; }
    [[nodiscard]] io_multiplexer* home() const noexcept { return home_; }

    /// Records that the coroutine resumes on the thread of `to`: resume_on().
    void set_place(io_multiplexer& to) noexcept { place_ = &to; }
    [[nodiscard]] io_multiplexer* place() const noexcept { return place_; }

    /// Sets the scope to run in, before the coroutine is started. An earlier one stays, and is
    /// nested in `outer`.
    void inherit_scope(cancel_scope* outer) noexcept {
        if (not has_own_scope_) {
            scope_ = outer;
        } else if (scope_ != nullptr and outer != nullptr) {
            scope_->nest_in(*outer);
        }
    }
    /// Runs the coroutine in `own`, or in no scope, independent of the scope of its awaiter.
    void set_scope(cancel_scope* own) noexcept {
        scope_ = own;
        has_own_scope_ = true;
    }
    [[nodiscard]] bool is_uncancelled() const noexcept { return has_own_scope_ and scope_ == nullptr; }

protected:
    scoped_promise() noexcept = default;
    ~scoped_promise() = default;

private:
    cancel_scope* scope_ = nullptr;
    io_multiplexer* home_ = nullptr;
    io_multiplexer* place_ = nullptr;
    bool has_own_scope_ = false;
};

/// Returns the scope that a coroutine of any type runs in; null if its promise has none.
template <class Promise>
[[nodiscard]] cancel_scope* scope_of(std::coroutine_handle<Promise> coroutine) noexcept {
    if constexpr (requires {
                      { coroutine.promise().scope() } -> std::same_as<cancel_scope*>;
                  }) {
        return coroutine.promise().scope();
    } else {
        return nullptr;
    }
}

/// Returns the multiplexer on whose thread a coroutine of any type is now; null if its promise has
/// none.
template <class Promise>
[[nodiscard]] io_multiplexer* place_of(std::coroutine_handle<Promise> coroutine) noexcept {
    if constexpr (requires { coroutine.promise().place(); }) {
        return coroutine.promise().place();
    } else {
        return nullptr;
    }
}

/// The operations of io_handle in awaitable form: `co_await co_read(pipe, {.buffers = into})`. They
/// are the senders under other names. The request's memory, and the handle, must outlive the await.
/// Suspends: unless it completes at once. Errors: as the blocking form, and ECANCELED.
template <std::derived_from<io_handle> Handle>
[[nodiscard]] auto co_read(Handle& from, io_request<buffers_type> request, deadline within = {}) noexcept {
    return async_read(from, request, within);
}
template <std::derived_from<io_handle> Handle>
[[nodiscard]] auto co_read(Handle& from, io_request<bytes_type> request, deadline within = {}) noexcept {
    return async_read(from, request, within);
}
template <std::derived_from<io_handle> Handle>
[[nodiscard]] auto co_write(Handle& to, io_request<const_buffers_type> request,
                            deadline within = {}) noexcept {
    return async_write(to, request, within);
}
template <std::derived_from<io_handle> Handle>
[[nodiscard]] auto co_write(Handle& to, io_request<const_bytes_type> request, deadline within = {}) noexcept {
    return async_write(to, request, within);
}
template <std::derived_from<io_handle> Handle>
[[nodiscard]] auto co_write_some(Handle& to, io_request<const_buffers_type> request,
                                 deadline within = {}) noexcept {
    return async_write_some(to, request, within);
}
template <std::derived_from<io_handle> Handle>
[[nodiscard]] auto co_write_some(Handle& to, io_request<const_bytes_type> request,
                                 deadline within = {}) noexcept {
    return async_write_some(to, request, within);
}
[[nodiscard]] inline auto co_barrier(io_handle& to, barrier_kind kind = barrier_kind::wait_all,
                                     io_request<const_buffers_type> range = {},
                                     deadline within = {}) noexcept {
    return async_barrier(to, kind, range, within);
}
/// Waits until a read (direction::in) or a write would not wait.
[[nodiscard]] inline auto co_ready(multiplexable_handle& target, direction which,
                                   deadline within = {}) noexcept {
    return async_ready(target, which, within);
}
/// Waits for a time. Errors: ECANCELED.
[[nodiscard]] inline auto co_sleep(io_multiplexer& multiplexer, deadline until) noexcept {
    return async_sleep(multiplexer, until);
}
/// Waits for a word in memory. Errors: ETIMEDOUT; ECANCELED.
[[nodiscard]] inline auto co_wait_word(io_multiplexer& multiplexer, const word_wait& what) noexcept {
    return async_wait_word(multiplexer, what);
}

}  // namespace sluice::io
