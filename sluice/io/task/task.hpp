#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/frame_pool.hpp"

namespace sluice::io {

template <class T>
class task;

namespace detail {

class task_promise_base;

// The listener for the end of a task that no coroutine awaits.
class task_listener {
public:
    // The frame is suspended at its end, so it may be destroyed here. Returns the coroutine to run
    // next, on this stack.
    virtual std::coroutine_handle<> task_finished(task_promise_base& finished) noexcept = 0;

protected:
    ~task_listener() = default;
};

class task_promise_base : public scoped_promise, public pooled_frame {
public:
    [[nodiscard]] static constexpr std::suspend_always initial_suspend() noexcept { return {}; }

    // The awaiting task resumes on its own thread, also if this task ended on another.
    class final_awaiter {
    public:
        [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> finished) noexcept {
            task_promise_base& promise = finished.promise();
            io_multiplexer* const home = promise.home();
            if (home == nullptr or home->is_owner()) [[likely]]
                return promise.next();
            // Created only now, in the frame, which stays until the awaiter on the other thread
            // destroys it.
            detail::engine::post_last(*home, *new (room_.data()) home_resumption(promise));
            return std::noop_coroutine();
        }
        static void await_resume() noexcept {}

    private:
        class home_resumption final : public posted_item {
        public:
            explicit home_resumption(task_promise_base& of) noexcept : of_(of) {}
            void invoke() noexcept override { of_.next().resume(); }  // this may be gone then

        private:
            task_promise_base& of_;
        };

        alignas(home_resumption) std::array<std::byte, sizeof(home_resumption)> room_;
    };
    [[nodiscard]] static final_awaiter final_suspend() noexcept { return {}; }

    // Thrown again where the result is taken.
    void unhandled_exception() noexcept { thrown_ = std::current_exception(); }
    [[nodiscard]] const std::exception_ptr& thrown() const noexcept { return thrown_; }
    void rethrow() const {
        if (thrown_ != nullptr) [[unlikely]]
            std::rethrow_exception(thrown_);
    }

    void set_continuation(std::coroutine_handle<> waiter) noexcept {
        ENSURE(not continuation_ and listener_ == nullptr, "a task is started once");
        continuation_ = waiter;
    }
    void set_listener(task_listener& listener) noexcept {
        ENSURE(not continuation_ and listener_ == nullptr, "a task is started once");
        listener_ = &listener;
    }

protected:
    task_promise_base() noexcept = default;
    ~task_promise_base() = default;

private:
    // The coroutine that runs after the end of the body. A listener may destroy the frame.
    [[nodiscard]] std::coroutine_handle<> next() noexcept {
        return continuation_ ? continuation_ : listener_->task_finished(*this);
    }

    std::coroutine_handle<> continuation_;
    task_listener* listener_ = nullptr;
    std::exception_ptr thrown_;
};

// Passes an exception of a task without an awaiter to the failure handler.
void report_thrown(const std::exception_ptr& thrown) noexcept;

template <class T>
class task_promise final : public task_promise_base {
public:
    static_assert(std::is_nothrow_move_constructible_v<T>, "what a task returns must move without throwing");

    [[nodiscard]] task<T> get_return_object() noexcept;

    template <class U = T>
        requires std::is_constructible_v<T, U&&>
    void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U&&>) {
        value_.emplace(std::forward<U>(value));
    }
    [[nodiscard]] T take() {
        this->rethrow();
        ENSURE(value_.has_value(), "the result of a task is taken once, after it has finished");
        return *std::move(value_);
    }

private:
    std::optional<T> value_;
};

template <class T>
class task_promise<T&> final : public task_promise_base {
public:
    [[nodiscard]] task<T&> get_return_object() noexcept;
    void return_value(T& value) noexcept { value_ = &value; }
    [[nodiscard]] T& take() const {
        this->rethrow();
        ENSURE(value_ != nullptr, "the result of a task is taken after it has finished");
        return *value_;
    }

private:
    T* value_ = nullptr;
};

template <>
class task_promise<void> final : public task_promise_base {
public:
    [[nodiscard]] task<void> get_return_object() noexcept;
    static void return_void() noexcept {}
    void take() const { rethrow(); }
};

}  // namespace detail

/// A coroutine that is awaited by another: `task<result<int>> answer(…) { … co_return 42; }`.
///
/// Lazy: the body begins when the task is awaited (or passed to sync_wait, when_all, a task_group).
/// When it ends, its caller resumes on the same stack: neither a chain of tasks nor a loop grows
/// the stack. Runs in its parent's cancel scope. `T` may be void, a reference, or move-only. Errors
/// are values; an exception that leaves the body is thrown again to the awaiting task. If there is
/// none (a task_group's child), it goes to the failure handler.
///
/// Owns the frame; a task that waits for I/O must not be destroyed (see operation_awaiter). Thread
/// safety: one thread at a time. resume_on() moves the task alone: a task that awaits it resumes on
/// the thread of its own multiplexer, and so do sync_wait, when_all, race and task_group. The loop
/// of that multiplexer must still run then: hold a work_guard. Allocates: the frame, from the
/// frame_pool chosen as described there. Suspends: where the body does.
template <class T = void>
class [[nodiscard]] task {
public:
    using value_type = T;
    using promise_type = detail::task_promise<T>;

    task(task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    task& operator=(task&& other) noexcept {
        if (this != &other) {
            if (frame_) frame_.destroy();
            frame_ = std::exchange(other.frame_, nullptr);
        }
        return *this;
    }
    ~task() {
        if (frame_) frame_.destroy();
    }

    /// Starts the task, waits for it and returns its result. Once: `co_await std::move(t)`.
    [[nodiscard]] auto operator co_await() && noexcept {
        ENSURE(frame_ != nullptr, "a task that was moved from has nothing to await");
        return awaiter{frame_};
    }

    [[nodiscard]] bool is_valid() const noexcept { return frame_ != nullptr; }
    /// Returns whether the body has ended.
    [[nodiscard]] bool is_done() const noexcept { return frame_ != nullptr and frame_.done(); }

    /// Returns the result of a finished task; once. Throws: an exception that left its body.
    [[nodiscard]] T take_result() {
        ENSURE(is_done(), "the result of a task is taken after it has finished");
        return frame_.promise().take();
    }

    /// For functions that start tasks: sync_wait, when_all. Not for users.
    [[nodiscard]] std::coroutine_handle<promise_type> frame() const noexcept { return frame_; }
    [[nodiscard]] std::coroutine_handle<promise_type> release() noexcept {
        return std::exchange(frame_, nullptr);
    }

private:
    friend promise_type;
    using handle_type = std::coroutine_handle<promise_type>;

    struct awaiter {
        handle_type frame;

        [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
        template <class Promise>
        [[nodiscard]] handle_type await_suspend(std::coroutine_handle<Promise> parent) const noexcept {
            frame.promise().inherit_scope(scope_of(parent));
            frame.promise().set_home(place_of(parent));
            frame.promise().set_continuation(parent);
            return frame;
        }
        T await_resume() const { return frame.promise().take(); }
    };

    explicit task(handle_type frame) noexcept : frame_(frame) {}

    handle_type frame_;
};

/// Runs `work` in `own`, nested in the scope of its awaiter: `own.cancel()` ends its I/O. `own`
/// outlives it.
template <class T>
[[nodiscard]] task<T> in_scope(cancel_scope& own, task<T> work) noexcept {
    work.frame().promise().set_scope(&own);
    return work;
}

/// Runs `work` in no scope: its I/O continues when its parent has been cancelled. For messages that
/// must be sent to the peer before a connection is closed. Give it a deadline.
template <class T>
[[nodiscard]] task<T> uncancelled(task<T> work) noexcept {
    work.frame().promise().set_scope(nullptr);
    return work;
}

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}
template <class T>
task<T&> task_promise<T&>::get_return_object() noexcept {
    return task<T&>(std::coroutine_handle<task_promise>::from_promise(*this));
}
inline task<void> task_promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

}  // namespace detail
}  // namespace sluice::io
