#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::io {

template <class Call>
class call_awaiter;
template <class Call>
class cancellable_call_awaiter;
class call_executor;
class call_cancellation;

struct call_threads_options {
    std::size_t threads_max = 1;
    /// Carries out the calls in place of threads: a simulation. Null: threads do. Outlives them.
    call_executor* executor = nullptr;
    /// The clock for the age of calls; null: the machine's. Outlives the threads.
    const clock_source* clock = nullptr;
    /// How long the destructor waits for calls that are running.
    std::chrono::nanoseconds stop_wait_max = std::chrono::seconds(1);
};

/// The state of the threads.
struct call_statistics {
    std::size_t queued = 0;   // calls that have not begun
    std::size_t running = 0;  // calls that have begun and not ended
    std::size_t threads = 0;
    std::uint64_t completed = 0;
    std::chrono::nanoseconds oldest_age{0};  // the age of the oldest running call
};

/// A call, as seen by the threads. It is in one queue at most, and lives until it has ended.
class queued_call {
public:
    queued_call() noexcept = default;
    queued_call(const queued_call&) = delete;
    queued_call& operator=(const queued_call&) = delete;

protected:
    ~queued_call() = default;

private:
    friend class call_executor;
    friend class call_threads;

    /// Runs on a thread. Returns whether come_back() follows; otherwise this may be gone already.
    virtual bool carry_out() noexcept = 0;
    /// Notifies the caller, on the same thread. This may be gone afterwards.
    virtual void come_back() noexcept {}

    list_hook<queued_call> link_;
};

/// The replacement for threads in a simulation, which decides when each call runs.
/// Thread safety: any thread.
class call_executor {
public:
    call_executor(const call_executor&) = delete;
    call_executor& operator=(const call_executor&) = delete;

    /// Has the call carried out once, at some time after this, unless it is cancelled.
    virtual void submit(queued_call& one) noexcept = 0;
    /// Drops a call that has not begun. Returns whether it had not.
    [[nodiscard]] virtual bool cancel(queued_call& one) noexcept = 0;
    [[nodiscard]] virtual call_statistics statistics() const noexcept = 0;

protected:
    call_executor() noexcept = default;
    ~call_executor() = default;

    /// Carries out a call, which may be gone afterwards. Blocks: as long as the call does.
    static void carry_out(queued_call& one) noexcept {
        if (one.carry_out()) one.come_back();
    }
};

/// Threads that carry out calls which would block a loop and have no asynchronous form, such as
/// those of a file system. Their owner passes them on; nothing in io starts any by itself.
///
/// Calls begin in the order of the requests, as soon as a thread is free, and run to their end. A
/// thread is started when a call comes and no thread is free, and stays. A call may wait for a
/// resource that another running call holds, but not for a call that has not begun: all threads
/// might wait for it. The loops of the callers outlive the threads, because a thread may still be
/// waking a loop when the coroutine has already resumed.
///
/// Monitor. Thread safety: run() on the loop's thread, everything else on any. Allocates: in
/// starting a thread.
class call_threads {
public:
    explicit call_threads(std::size_t threads_max) : call_threads({.threads_max = threads_max}) {}
    /// Allocates: yes.
    explicit call_threads(const call_threads_options& options);
    call_threads(const call_threads&) = delete;
    call_threads& operator=(const call_threads&) = delete;
    /// Every call of run() must have begun. Posted calls that are still queued are carried out,
    /// unless calls that do not end occupy all threads for call_threads_options::stop_wait_max. A
    /// call that does not end within this time keeps its thread, which the process then cannot
    /// join: all objects that the call refers to must exist until the process ends, and its
    /// coroutine never continues. If the destructor runs on one of these threads, inside a call,
    /// that thread ends by itself later. Blocks: until the others have ended, or for stop_wait_max.
    ~call_threads();

    /// `co_await threads.run(loop, [&] { return volume.commit(); })`: carries out the call on one
    /// of the threads; the coroutine, which runs on `loop`, resumes there. Objects that the call
    /// refers to outlive the await, which cannot be cancelled. If no thread can be started at all,
    /// the loop carries it out. Suspends.
    template <std::invocable Call>
    [[nodiscard]] call_awaiter<Call> run(io_multiplexer& loop, Call call) noexcept {
        return call_awaiter<Call>(*this, loop, std::move(call));
    }

    /// The same, for a call that `by`, unless null, may cancel before it has begun. The result is
    /// then empty.
    template <std::invocable Call>
    [[nodiscard]] cancellable_call_awaiter<Call> run(io_multiplexer& loop, call_cancellation* by,
                                                     Call call) noexcept {
        return cancellable_call_awaiter<Call>(*this, loop, by, std::move(call));
    }

    /// Carries out `one`, without a notification of its end. If no thread can be started at all,
    /// the caller does it. Allocates, Blocks: no, except in that case.
    void post(queued_call& one) noexcept { submit(one); }

    /// Starts a thread if there is none, so that no later call has to be carried out by its caller.
    /// Errors: EAGAIN, ENOMEM.
    [[nodiscard]] result<void> start_first_thread() noexcept;

    [[nodiscard]] call_statistics statistics() const noexcept;

private:
    template <class Call>
    friend class call_awaiter;
    template <class Call>
    friend class cancellable_call_awaiter;
    friend class call_cancellation;
    struct shared_state;

    void submit(queued_call& one) noexcept;
    // Removes a call that has not begun from the queue. Returns whether it was there.
    [[nodiscard]] bool cancel(queued_call& one) noexcept;
    static void start_thread(const std::shared_ptr<shared_state>& state) noexcept;

    std::shared_ptr<shared_state> state_;  // with every thread: one that hangs outlives this
};

/// A call in the frame of the coroutine that awaits it.
template <class Call>
class call_in_frame : public queued_call, private posted_item {
public:
    using value_type = std::invoke_result_t<Call&>;
    static_assert(not std::is_void_v<value_type> and std::is_nothrow_move_constructible_v<value_type>);

    call_in_frame(call_threads& on, io_multiplexer& loop, Call call) noexcept
        : threads_(on), loop_(loop), call_(std::move(call)) {}
    /// Only before it is awaited (ENSURE).
    call_in_frame(call_in_frame&& from) noexcept
        : threads_(from.threads_), loop_(from.loop_), call_(std::move(from.call_)) {
        ENSURE(not from.waiter_, "a call is moved before it is awaited");
    }
    call_in_frame& operator=(call_in_frame&&) = delete;

    /// For an awaiter that contains this one: returns the call, and its result if that awaiter has
    /// carried it out. It must not suspend for this then.
    [[nodiscard]] Call& call() noexcept { return call_; }
    void complete(value_type outcome) noexcept { outcome_.emplace(std::move(outcome)); }

protected:
    ~call_in_frame() = default;

    void wait(std::coroutine_handle<> waiter) noexcept {
        waiter_ = waiter;
        until_back_.emplace(loop_);
    }
    // Posting publishes the outcome to the loop; after it this may be gone.
    void come_back() noexcept final { loop_.post(*this); }

    call_threads& threads_;
    std::optional<value_type> outcome_;

private:
    bool carry_out() noexcept final {
        outcome_.emplace(call_());
        return true;
    }
    void invoke() noexcept final {
        until_back_.reset();
        before_resuming();
        waiter_.resume();
    }
    virtual void before_resuming() noexcept {}

    io_multiplexer& loop_;
    Call call_;
    std::optional<io_multiplexer::work_guard> until_back_;
    std::coroutine_handle<> waiter_;
};

/// The awaiter that call_threads::run creates. May be moved until it is awaited.
template <class Call>
class [[nodiscard]] call_awaiter final : public call_in_frame<Call> {
public:
    using call_in_frame<Call>::call_in_frame;
    using typename call_in_frame<Call>::value_type;

    [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiter) noexcept {
        this->wait(waiter);
        this->threads_.submit(*this);
    }
    [[nodiscard]] value_type await_resume() noexcept { return *std::move(this->outcome_); }
};

/// A call that can be cancelled, as seen by its call_cancellation.
class cancellable_call {
protected:
    ~cancellable_call() = default;

private:
    friend class call_cancellation;
    virtual void cancel_if_queued() noexcept = 0;
    list_hook<cancellable_call> link_;
};

/// Cancels the calls of a cancelled request that have not begun. Running calls are not affected.
/// Belongs to the thread of the loop of its calls, and outlives them.
class call_cancellation {
public:
    call_cancellation() noexcept = default;
    call_cancellation(const call_cancellation&) = delete;
    call_cancellation& operator=(const call_cancellation&) = delete;

    /// Cancels all its calls that have not begun, and later ones. Resumes no coroutine: the loop
    /// does. Complexity: linear in its calls.
    void cancel() noexcept {
        is_cancelled_ = true;
        for (cancellable_call& each : pending_)
            each.cancel_if_queued();
    }
    [[nodiscard]] bool is_cancelled() const noexcept { return is_cancelled_; }

private:
    template <class Call>
    friend class cancellable_call_awaiter;

    void enter(cancellable_call& one) noexcept { pending_.push_back(one); }
    void leave(cancellable_call& one) noexcept { pending_.erase(one); }

    bool is_cancelled_ = false;
    intrusive_list<cancellable_call, &cancellable_call::link_> pending_;
};

/// The awaiter that call_threads::run creates for a call that can be cancelled. May be moved
/// until it is awaited.
template <class Call>
class [[nodiscard]] cancellable_call_awaiter final : public call_in_frame<Call>, private cancellable_call {
public:
    using typename call_in_frame<Call>::value_type;

    cancellable_call_awaiter(call_threads& on, io_multiplexer& loop, call_cancellation* by,
                             Call call) noexcept
        : call_in_frame<Call>(on, loop, std::move(call)), by_(by) {}
    cancellable_call_awaiter(cancellable_call_awaiter&& from) noexcept
        : call_in_frame<Call>(std::move(from)), by_(from.by_) {}
    cancellable_call_awaiter& operator=(cancellable_call_awaiter&&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return by_ != nullptr and by_->is_cancelled(); }
    void await_suspend(std::coroutine_handle<> waiter) noexcept {
        this->wait(waiter);
        if (by_ != nullptr) by_->enter(*this);
        this->threads_.submit(*this);
    }
    /// Empty if the call was cancelled before it has begun.
    [[nodiscard]] std::optional<value_type> await_resume() noexcept { return std::move(this->outcome_); }

private:
    void cancel_if_queued() noexcept override {
        if (this->threads_.cancel(*this)) this->come_back();
    }
    void before_resuming() noexcept override {
        if (by_ != nullptr) by_->leave(*this);
    }

    call_cancellation* by_;
};

}  // namespace sluice::io
