#pragma once

#include <asio/execution_context.hpp>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::io {

namespace detail {
class asio_core_base;
}

/// A multiplexer as an Asio execution context: the context on which Asio's handlers, strands and
/// coroutines run, with the members and the meaning of asio::io_context. It needs ASIO_STANDALONE,
/// and Asio 1.22 or later.
///
/// Any number of threads may call run(), poll() and their variants. With a multiplexer for several
/// threads (best_available(2)), all of them run handlers, several at a time; the handlers of one
/// strand run one at a time, as in Asio. A multiplexer for a single thread is run by the first
/// thread that calls; the others wait until the context is stopped. Handlers run inside run() here,
/// or inside the multiplexer's. run() rethrows their exceptions; an exception of a handler that the
/// multiplexer's own run() invokes terminates the program.
///
/// Stopped: by stop(), or because it has run out of work, as in Asio. Then run() and its variants
/// return 0 at once, until restart().
///
/// Destruction ends pending operations and destroys their handlers without invoking them, with all
/// that they own (coroutines, sockets). If operations are pending on a multiplexer for one thread,
/// the thread that ran it must destroy it. Thread safety: any thread for get_executor(), executors,
/// stop(), restart(), stopped(), and run() as above.
class asio_context : public asio::execution_context {
public:
    template <class Allocator, bool Tracked>
    class basic_executor;
    using executor_type = basic_executor<std::allocator<void>, false>;
    using count_type = std::size_t;

    /// On a multiplexer that outlives it; several contexts may share one.
    explicit asio_context(io_multiplexer& multiplexer) : asio_context(multiplexer, nullptr) {}
    /// On the best multiplexer that this system has, which it owns: for one thread if the hint is
    /// 1, else for several. Throws: std::system_error if none can be created.
    asio_context() : asio_context(0) {}
    explicit asio_context(int concurrency_hint);
    ~asio_context();

    [[nodiscard]] executor_type get_executor() noexcept;
    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *multiplexer_; }

    /// Runs handlers until the context is stopped: run_one() at most one handler; run_for() and
    /// run_until() begin nothing after their time; poll() and poll_one() do not wait. Returns the
    /// number of handlers run. Throws: the exception of a handler, and system_error if the kernel
    /// refuses to wait; call it again to continue. Blocks: yes, except poll() and poll_one().
    count_type run() { return run_until(time_point::max()); }
    count_type run_one() { return run_one_until(time_point::max()); }
    count_type run_for(io_multiplexer::duration within) { return run_until(multiplexer_->now() + within); }
    count_type run_until(io_multiplexer::time_point until) { return run_some(all, until); }
    count_type run_one_for(io_multiplexer::duration within) {
        return run_one_until(multiplexer_->now() + within);
    }
    count_type run_one_until(io_multiplexer::time_point until) { return run_some(1, until); }
    count_type poll() { return run_some(all, time_point::min()); }
    count_type poll_one() { return run_some(1, time_point::min()); }

    /// Makes run() and its variants return as soon as they can, and also one thread that waits in
    /// the multiplexer's own run(). Blocks: no.
    void stop() noexcept;
    /// Lets them run again. Must be called while none of them runs.
    void restart() noexcept { stopped_.store(false, std::memory_order_release); }
    [[nodiscard]] bool stopped() const noexcept {
        return stopped_.load(std::memory_order_acquire);  // pairs with stop()
    }

    /// Keeps the context usable around fork(2), as in Asio: fork_prepare before it, then
    /// fork_parent, or fork_child. Pending operations continue in both processes; the child has its
    /// own multiplexer under the same objects. It may be called from a handler; no other thread may
    /// use the context or its objects during the fork. Hides the function of the base class.
    /// Throws: asio::system_error. In fork_prepare: EBUSY while names are looked up, and the errors
    /// of io_multiplexer::notify_fork(), when services have been prepared already; call it with
    /// fork_parent then. In fork_child: if there are too few descriptors, or no memory, for that
    /// multiplexer.
    void notify_fork(fork_event event);

    /// Returns whether the calling thread is inside a handler that runs here.
    [[nodiscard]] bool running_in_this_thread() const noexcept {
        for (const handler_frame* at = innermost_handler_; at != nullptr; at = at->around)
            if (at->of == this) return true;
        return false;
    }

    // --- for the adapter's other classes; not for users

    /// Runs a handler on a thread that runs the multiplexer; does not run it if the context is
    /// being destroyed.
    template <class Handler>
    void invoke(Handler&& handler) noexcept {
        if (is_discarding_) [[unlikely]]
            return;
        runner* const by = runner_here();
        if (by != nullptr and not running_in_this_thread()) ++by->handlers_run;
        const handler_frame here(*this);
        try {
            std::forward<Handler>(handler)();
        } catch (...) {
            if (by == nullptr) std::terminate();
            by->thrown.push_back(std::current_exception());
        }
    }

    /// Operations and functions that wait for the loop are counted, so that the destructor can end
    /// them.
    void begin_outstanding() noexcept {
        outstanding_.fetch_add(1, std::memory_order_relaxed);  // only the loop's thread acts on it
    }
    void end_outstanding() noexcept { outstanding_.fetch_sub(1, std::memory_order_relaxed); }

    /// Runs `action()` on the multiplexer's thread, between the handlers; with several threads,
    /// at once. Any thread.
    template <class Action>
    void act(Action&& action) {
        if (multiplexer_->is_for_threads() or multiplexer_->is_owner()) {
            action();
            return;
        }
        begin_outstanding();
        auto posted = multiplexer_->post([this, action = std::forward<Action>(action)]() mutable noexcept {
            action();
            end_outstanding();
        });
        if (posted.has_value()) return;
        end_outstanding();
        throw std::bad_alloc();
    }

    /// Adds an object that has operations on the loop, for the destructor. Called on a thread that
    /// runs the multiplexer.
    void enlist(detail::asio_core_base& one) noexcept;
    /// Destroys an enlisted object: now, or on the thread that runs the loop. Any thread.
    void destroy_core(detail::asio_core_base& one) noexcept;
    void delist(detail::asio_core_base& one) noexcept;
    [[nodiscard]] bool is_discarding() const noexcept { return is_discarding_; }

private:
    using time_point = io_multiplexer::time_point;

    // A handler that runs on this thread, inside of those around it.
    struct handler_frame {
        explicit handler_frame(const asio_context& now) noexcept
            : of(&now), around(std::exchange(innermost_handler_, this)) {}
        handler_frame(const handler_frame&) = delete;
        handler_frame& operator=(const handler_frame&) = delete;
        ~handler_frame() { innermost_handler_ = around; }

        const asio_context* of;
        const handler_frame* around;
    };
    // A call of run() or its variants on this thread.
    struct runner {
        explicit runner(const asio_context& now) noexcept
            : of(&now), around(std::exchange(innermost_runner_, this)) {}
        runner(const runner&) = delete;
        runner& operator=(const runner&) = delete;
        ~runner() { innermost_runner_ = around; }

        const asio_context* of;
        runner* around;
        count_type handlers_run = 0;
        std::vector<std::exception_ptr> thrown{};
    };
    static inline thread_local constinit const handler_frame* innermost_handler_ = nullptr;
    static inline thread_local constinit runner* innermost_runner_ = nullptr;

    [[nodiscard]] runner* runner_here() const noexcept {
        runner* at = innermost_runner_;
        while (at != nullptr and at->of != this)
            at = at->around;
        return at;
    }

    class waker;
    struct lists;
    static constexpr count_type all = std::numeric_limits<count_type>::max();

    asio_context(io_multiplexer& multiplexer, std::unique_ptr<io_multiplexer> owned);
    explicit asio_context(std::unique_ptr<io_multiplexer> owned);
    [[nodiscard]] static std::unique_ptr<io_multiplexer> make_multiplexer(int concurrency_hint);

    count_type run_some(count_type max, time_point until);
    [[nodiscard]] bool becomes_runner(runner& self, time_point until);
    [[nodiscard]] result<int> step(time_point until) noexcept;
    [[nodiscard]] bool may_be_run_here() const noexcept;
    void become_stopped() noexcept;
    [[nodiscard]] std::exception_ptr leave(runner& self) noexcept;
    void destroy_unowned() noexcept;
    void destroy_unowned_locked() noexcept;
    void discard_pending() noexcept;

    std::unique_ptr<io_multiplexer> owned_;
    io_multiplexer* multiplexer_;
    std::unique_ptr<lists> lists_;
    waker* waker_;

    // Shared between threads.
    std::atomic<bool> stopped_{false};
    std::atomic<std::size_t> outstanding_{0};
    std::mutex mutex_;  // guards the members from here to `thrown_`
    std::condition_variable has_changed_;
    int runners_ = 0;                         // threads in run() or its variants
                                              // that have their turn
    bool is_claimed_ = false;                 // a thread runs it, or has
    std::vector<std::exception_ptr> thrown_;  // more than one in one run(); for the next

    bool is_discarding_ = false;  // the destructor's
};

}  // namespace sluice::io
