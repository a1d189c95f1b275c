#pragma once

#include <concepts>
#include <condition_variable>
#include <coroutine>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/io_multiplexer.hpp"

namespace sluice::io {

template <class Call>
class call_awaiter;

/// Threads that carry out calls which would block a loop and have no asynchronous spelling: those of a file
/// system in user space. Whoever has them passes them on; nothing in io starts any by itself.
///
/// A call begins in the order of asking, as soon as a thread is free; it runs to its end. Threads are started
/// as calls come that none is free for, and stay. A call may wait for what another one holds, but not for one
/// that has not begun: all threads might wait for it. The loops that calls came from outlive the threads,
/// which may be in the middle of waking one when its coroutine has gone on already. Thread safety: run() from
/// any loop's thread. Allocates: in starting a thread.
class call_threads {
public:
    explicit call_threads(std::size_t threads_max) noexcept : threads_max_(threads_max) {
        ENSURE(threads_max != 0);
    }
    call_threads(const call_threads&) = delete;
    call_threads& operator=(const call_threads&) = delete;
    /// All calls have come back (ENSURE). Blocks: until the threads have ended.
    ~call_threads();

    /// `co_await threads.run(loop, [&] { return volume.commit(); })`: carries out the call on one of the
    /// threads; the coroutine, which runs on `loop`, goes on there. What the call refers to outlives the
    /// await, which cannot be cancelled. Where no thread can be started at all, the loop carries it out.
    /// Suspends.
    template <std::invocable Call>
    [[nodiscard]] call_awaiter<Call> run(io_multiplexer& loop, Call call) noexcept {
        return call_awaiter<Call>(*this, loop, std::move(call));
    }

private:
    template <class Call>
    friend class call_awaiter;

    // One call, in the frame of the coroutine that awaits it.
    class queued_call {
    public:
        virtual void perform() noexcept = 0;
        list_hook<queued_call> link;

    protected:
        ~queued_call() = default;
    };

    void submit(queued_call& one) noexcept;
    void start_thread() noexcept;
    void work() noexcept;

    const std::size_t threads_max_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable has_news_;
    intrusive_list<queued_call, &queued_call::link> queue_;
    std::size_t queued_ = 0;  // calls that have not begun
    std::size_t idle_ = 0;    // threads that wait for one, or were woken for one and have not got it yet
    bool stops_ = false;
    std::vector<std::thread> threads_;
};

/// What call_threads::run makes.
template <class Call>
class [[nodiscard]] call_awaiter final : private call_threads::queued_call, private posted_item {
public:
    using value_type = std::invoke_result_t<Call&>;
    static_assert(not std::is_void_v<value_type> and std::is_nothrow_move_constructible_v<value_type>);

    call_awaiter(call_threads& on, io_multiplexer& loop, Call call) noexcept
        : threads_(on), loop_(loop), call_(std::move(call)) {}
    call_awaiter(const call_awaiter&) = delete;
    call_awaiter& operator=(const call_awaiter&) = delete;

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter) noexcept {
        waiter_ = waiter;
        until_back_.emplace(loop_);
        threads_.submit(*this);
    }
    [[nodiscard]] value_type await_resume() noexcept { return *std::move(outcome_); }

private:
    // Posting publishes the outcome to the loop; after it this may be gone.
    void perform() noexcept override {
        outcome_.emplace(call_());
        loop_.post(*this);
    }
    void invoke() noexcept override {
        until_back_.reset();
        waiter_.resume();
    }

    call_threads& threads_;
    io_multiplexer& loop_;
    Call call_;
    std::optional<value_type> outcome_;
    std::optional<io_multiplexer::work_guard> until_back_;
    std::coroutine_handle<> waiter_;
};

}  // namespace sluice::io
