#pragma once

#include <coroutine>
#include <expected>
#include <type_traits>
#include <utility>

#include "sluice/io/loop/engine.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/task/late_waiter.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::io {

namespace detail {

// Cancels a scope at its deadline, unless stopped before.
class scope_alarm final : private detail::operation_record {
public:
    scope_alarm(io_multiplexer& multiplexer, cancel_scope& scope) noexcept
        : multiplexer_(multiplexer), scope_(scope) {}
    // Pending only if the frame is destroyed while the task waits, whose own operation has reported
    // that.
    ~scope_alarm() {
        if (has_started_) detail::engine::abandon(multiplexer_, *this);
    }

    void start(deadline within) noexcept;
    /// Returns whether this, and no earlier request, has cancelled the scope.
    [[nodiscard]] bool has_fired() const noexcept { return has_fired_; }

    /// `co_await alarm.stopped()`: ends it. The multiplexer then no longer refers to it.
    [[nodiscard]] auto stopped() noexcept {
        struct awaiter {
            scope_alarm& alarm;
            [[nodiscard]] bool await_ready() const noexcept { return not alarm.has_started_; }
            [[nodiscard]] bool await_suspend(std::coroutine_handle<> waiter) const noexcept {
                return alarm.stop(waiter);
            }
            void await_resume() const noexcept { alarm.has_started_ = false; }
        };
        return awaiter{*this};
    }

private:
    [[nodiscard]] bool stop(std::coroutine_handle<> waiter) noexcept;
    void signal_value() noexcept override;
    void signal_done() noexcept override;

    io_multiplexer& multiplexer_;
    cancel_scope& scope_;
    late_waiter<> waiter_;      // for done, which may come on another thread
    bool has_started_ = false;  // and has not been stopped
    bool has_fired_ = false;
};

// Awaits a task in a scope that its awaiter chooses.
template <class T>
class [[nodiscard]] await_within {
public:
    await_within(task<T>& work, cancel_scope& scope) noexcept : work_(work), scope_(scope) {}

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    [[nodiscard]] std::coroutine_handle<> await_suspend(
        std::coroutine_handle<Promise> parent) const noexcept {
        work_.frame().promise().inherit_scope(&scope_);
        work_.frame().promise().set_home(place_of(parent));
        work_.frame().promise().set_continuation(parent);
        return work_.frame();
    }
    static void await_resume() noexcept {}

private:
    task<T>& work_;
    cancel_scope& scope_;
};

template <class T>
struct deadline_outcome {
    using type = result<T>;
    static constexpr bool is_flat = false;
};
// An existing result (result, io_result) keeps its type.
template <class T>
    requires requires(const T& t) {
        { t.error() } -> std::same_as<const error&>;
        typename T::value_type;
    }
struct deadline_outcome<T> {
    using type = T;
    static constexpr bool is_flat = true;
};

}  // namespace detail

/// Runs `work` with a time limit: at the deadline, its I/O is cancelled, and the call waits until
/// the task has ended. Returns a `result` of its value or, if that is a result, the same type.
///
/// Errors: ETIMEDOUT if the task really was ended early: a task that returns results ended with
/// ECANCELED, any other had I/O that did. A task that was faster, or that succeeded without the
/// cancelled I/O, keeps its outcome. Throws: an exception that left the task. A relative deadline
/// begins when this is awaited. Computations between awaits, and the work in uncancelled(), are not
/// ended early. To limit a clean-up: `uncancelled(with_deadline(…))`, not the reverse (ENSURE).
/// Allocates: its frame. Thread safety: the multiplexer's thread.
template <class T>
[[nodiscard]] task<typename detail::deadline_outcome<T>::type> with_deadline(io_multiplexer& multiplexer,
                                                                             task<T> work,
                                                                             deadline within) noexcept {
    static_assert(not std::is_reference_v<T>, "a result cannot hold a reference: return a pointer");
    using outcome = detail::deadline_outcome<T>;
    ENSURE(not work.frame().promise().is_uncancelled(),
           "nothing would end it: uncancelled(with_deadline(…))");
    cancel_scope* const outer = co_await current_scope;
    cancel_scope inside;
    if (outer != nullptr) inside.nest_in(*outer);
    detail::scope_alarm alarm(multiplexer, inside);
    // Its frame is destroyed before its scope and the alarm, if this frame is destroyed while it
    // waits.
    task<T> running = std::move(work);
    alarm.start(within);
    co_await detail::await_within(running, inside);
    co_await alarm.stopped();
    running.frame().promise().rethrow();
    if constexpr (outcome::is_flat) {
        T returned = running.take_result();
        if (alarm.has_fired() and not returned and returned.error() == std::errc::operation_canceled)
            co_return failure({ETIMEDOUT, returned.error().operation(), returned.error().descriptor()});
        co_return returned;
    } else {
        if (alarm.has_fired() and inside.has_cut_short())
            co_return failure({ETIMEDOUT, "task with deadline"});
        if constexpr (std::is_void_v<T>) {
            co_return typename outcome::type{};
        } else {
            co_return running.take_result();
        }
    }
}

}  // namespace sluice::io
