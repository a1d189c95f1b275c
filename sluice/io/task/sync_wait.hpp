#pragma once

#include <coroutine>
#include <utility>

#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::io {

namespace detail {

// Starts a task and runs the multiplexer until the task has finished.
class sync_waiter final : private task_listener {
public:
    explicit sync_waiter(io_multiplexer& multiplexer) noexcept : multiplexer_(multiplexer) {}

    // Blocks.
    void run(task_promise_base& root, std::coroutine_handle<> frame) noexcept;

private:
    std::coroutine_handle<> task_finished(task_promise_base& finished) noexcept override;

    io_multiplexer& multiplexer_;
    bool done_ = false;  // for several threads, under the multiplexer's lock
};

}  // namespace detail

/// Runs `root`, and the multiplexer until it has finished, and returns its result. Not from inside
/// a task or a receiver (ENSURE). Other work of the multiplexer advances during the wait, and
/// operations that are pending at the end stay pending. Throws: an exception that left the task.
/// Errors of the kernel, for which no loop can run, go to the failure handler. Blocks: until the
/// task has finished. Allocates: nothing. Thread safety: the multiplexer's thread; where there are
/// several, any thread, and several at once: after each wait a task resumes on any thread that runs
/// the multiplexer.
template <class T>
T sync_wait(io_multiplexer& multiplexer, task<T> root) {
    detail::sync_waiter(multiplexer).run(root.frame().promise(), root.frame());
    return root.take_result();
}

/// The awaiter of resume_on() and yield(): resumes a coroutine elsewhere.
class [[nodiscard]] hop_awaiter final : private posted_item {
public:
    enum class when : unsigned char { elsewhere_only, always };

    hop_awaiter(io_multiplexer& to, when hops) noexcept : to_(to), hops_(hops) {}
    hop_awaiter(const hop_awaiter&) = delete;
    hop_awaiter& operator=(const hop_awaiter&) = delete;

    [[nodiscard]] bool await_ready() const noexcept {
        return hops_ == when::elsewhere_only and to_.is_owner();
    }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
        waiter_ = waiter;
        if constexpr (requires { waiter.promise().set_place(to_); }) waiter.promise().set_place(to_);
        to_.post(*this);  // the coroutine may already be running there, and this be gone
    }
    static void await_resume() noexcept {}

private:
    void invoke() noexcept override { waiter_.resume(); }

    io_multiplexer& to_;
    when hops_;
    std::coroutine_handle<> waiter_;
};

/// Continues on the thread of `multiplexer`, which must be running it; at once if that is this
/// thread. The task that awaits this one stays where it is. Handles, scopes and pools stay with
/// their threads: code that runs there uses handles of `multiplexer`, inside uncancelled() if its
/// parent is in a scope. Allocates: nothing.
inline hop_awaiter resume_on(io_multiplexer& multiplexer) noexcept {
    return {multiplexer, hop_awaiter::when::elsewhere_only};
}

/// Lets others run: continues after all items that are posted already. For long computations
/// between awaits.
inline hop_awaiter yield(io_multiplexer& multiplexer) noexcept {
    return {multiplexer, hop_awaiter::when::always};
}

}  // namespace sluice::io
