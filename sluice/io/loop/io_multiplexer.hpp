#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/base/intrusive_mpsc_queue.hpp"
#include "sluice/io/call/limits.hpp"
#include "sluice/io/loop/operation_record.hpp"
#include "sluice/io/loop/posted_callable.hpp"
#include "sluice/io/loop/registration.hpp"

namespace sluice::io {

struct accept_request;
class external_work;
enum class progress : std::uint8_t;
class registered_buffer;
namespace detail {
struct engine;
}

/// Multiplexes the I/O of many handles on one thread, or on several (WG21 P2052R0).
///
/// Receivers are signalled only inside start(), poll(), complete_io…, timeout_io… and run…, on
/// the thread that calls them, and so do operations advance; only over epoll do threads of the
/// multiplexer carry out file operations (see worker_pool). Between handles, and between requests
/// on one file, there is no order. Requests in one direction of one stream are served in the
/// order they were started.
///
/// Functions that count return the number of completed (or invoked) items, if positive;
/// `nothing_ready`, a negative number, if some are pending and none was ready; 0 if nothing is
/// pending. A negative maximum (`unlimited`) means all items of one pass, see
/// limits::completions_per_pass_max. An error of the kernel (of epoll_pwait2 or io_uring_enter) is
/// returned if nothing was completed before it; otherwise by the next call, if it persists. The
/// operations stay pending.
///
/// Only run…, and try_run… with a time, wait. complete_io…, timeout_io… and invoke_posted_items…
/// never do: a time limits their execution time (P2052R0 4.3.1, 4.3.2).
///
/// Thread safety: a multiplexer for a single thread belongs to the thread that first starts or
/// completes an operation on it, or runs it; ENSURE checks. Only post(), the states of atomic_
/// senders, and external_work::complete() may be used from any thread. A multiplexer for
/// several threads (best_available(n)) may be used from any thread, and run by several at once:
/// see is_for_threads().
/// Allocates: attaching a handle, amortised; and post() of a callable. Nothing else allocates.
///
/// Invariants:
///   0. Only a thread that is inside accesses members that are not atomic: the owner or, for
///      several threads, the thread that holds the lock. See io_multiplexer_threads.cpp.
///   1. `pending_` counts the operations between start() and the done signal.
///   2. An operation is in exactly one place: its registration's queue, the back end's, with
///      another thread or in `completed_elsewhere_`, or in `ready_`.
///   3. `signalling_` is true exactly while a receiver runs. Operations that finish during that
///      time go to `ready_`, so receivers never nest and the stack does not grow.
class io_multiplexer {
public:
    using clock = std::chrono::steady_clock;
    using time_point = clock::time_point;
    using duration = clock::duration;

    static constexpr int unlimited = -1;
    static constexpr int nothing_ready = -1;
    static constexpr int nothing_pending = 0;

    io_multiplexer(const io_multiplexer&) = delete;
    io_multiplexer& operator=(const io_multiplexer&) = delete;
    virtual ~io_multiplexer();

    /// Returns "io_uring", "epoll" or "simulated".
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;

    /// Completes up to `max` operations that are ready. Ignores deadlines.
    /// Errors: those of the kernel. Blocks: no.
    result<int> complete_io(int max = unlimited) noexcept;

    /// As complete_io, at least once, until `max` are completed, none is ready or the time is up.
    result<int> complete_io_within(duration within, int max = unlimited) noexcept;
    result<int> complete_io_until(time_point until, int max = unlimited) noexcept;

    /// Ends up to `max` operations whose deadline has passed: cancels them and completes those
    /// that could be cancelled at once, with ETIMEDOUT. Complexity: O(log n) amortised for each
    /// that has passed. Errors: none. Blocks: no.
    result<int> timeout_io(int max = unlimited) noexcept;

    /// As timeout_io, repeated until `max` are ended, no deadline has passed or the time is up.
    result<int> timeout_io_within(duration within, int max = unlimited) noexcept;
    result<int> timeout_io_until(time_point until, int max = unlimited) noexcept;

    /// Invokes `item` on this multiplexer's thread. Any thread. Allocates: nothing. Blocks: no.
    void post(posted_item& item) noexcept;

    /// Invokes `invocable()` once, on this multiplexer's thread. Any thread. Errors: ENOMEM.
    /// Allocates: one node for the callable, freed after it has run. Blocks: no.
    template <std::invocable Invocable>
    [[nodiscard]] result<void> post(Invocable&& invocable) noexcept {
        using item = detail::posted_callable<std::decay_t<Invocable>>;
        posted_item* const fresh = item::make(std::forward<Invocable>(invocable));
        if (fresh == nullptr) return failure({ENOMEM, "post"});
        post(*fresh);
        return {};
    }

    /// Invokes up to `max` posted items. Returns 0 if nothing was posted. Errors: none. Blocks: no.
    result<int> invoke_posted_items(int max = unlimited) noexcept;
    /// As invoke_posted_items, repeated until `max` are invoked, none is left or the time is up.
    result<int> invoke_posted_items_within(duration within, int max = unlimited) noexcept;
    result<int> invoke_posted_items_until(time_point until, int max = unlimited) noexcept;

    /// Does all available work (posted items, deadlines, completions); waits until there is some.
    /// Returns how much; 0 when nothing is pending and no `work_guard` exists, so that `while
    /// (m.run().value_or(0) > 0) {}` runs all. Errors: those of the kernel; the operations stay
    /// pending. Blocks: until something happened; try_run never; try_run_for and try_run_until at
    /// most until the time.
    result<int> run(int max = unlimited) noexcept;
    result<int> try_run(int max = unlimited) noexcept;
    result<int> try_run_for(duration within, int max = unlimited) noexcept;
    result<int> try_run_until(time_point until, int max = unlimited) noexcept;

    /// While one exists, run() waits for posted items although no I/O is pending. Items that
    /// its thread has posted are invoked before run() returns zero. May be created, and
    /// destroyed, on any thread.
    class work_guard {
    public:
        explicit work_guard(io_multiplexer& multiplexer) noexcept : multiplexer_(&multiplexer) {
            multiplexer.guards_.fetch_add(1, std::memory_order_relaxed);  // a hint, orders nothing
        }
        work_guard(work_guard&& other) noexcept : multiplexer_(std::exchange(other.multiplexer_, nullptr)) {}
        work_guard& operator=(work_guard&&) = delete;
        ~work_guard();

    private:
        io_multiplexer* multiplexer_;
    };

    /// How operations begin if they have no setting of their own. `automatic`: a non-blocking call
    /// first, unless recent calls have found the handle not ready; on io_uring, operations on
    /// sockets that are started while many others complete are batched.
    void set_initiation(initiation how) noexcept { initiation_ = how; }

    /// Allocates memory for I/O that is registered with the kernel, where the back end supports
    /// that (io_uring). It must be freed before the multiplexer. By the owning thread, or before
    /// there is one. Errors: ENOMEM, EINVAL for no bytes. Allocates: the memory, by mmap; pinned,
    /// within RLIMIT_MEMLOCK.
    [[nodiscard]] result<registered_buffer> allocate_registered_buffer(std::size_t bytes) noexcept;

    /// Returns a number for a watchdog: odd during a turn of try_run… and run, even while the loop
    /// sleeps or is outside of them, and a different one for each turn. An odd number that does not
    /// change belongs to a turn that does not end. Any thread.
    [[nodiscard]] std::uint64_t turn() const noexcept { return turn_.load(std::memory_order_relaxed); }

    /// The steps of notify_fork().
    enum class fork_step : std::uint8_t { prepare, parent, child };
    /// Keeps this usable around fork(2): `prepare` before it, then `parent` or `child` in each
    /// process. After `prepare` no request is with the kernel. The child gets its own ring or
    /// epoll instance, because the parent's cannot be shared. Pending operations continue in
    /// both processes: both wait for the same connections and bytes. Timers and posted items
    /// also continue in both. An external_work, such as a name lookup or a wait for a lock, has
    /// its threads in the parent only: complete or cancel it before the fork, because in the
    /// child it may never complete.
    ///
    /// Must be called while no other thread uses this, by its owner if it is for one thread and has
    /// one; also from a receiver or posted item. Other threads may use other multiplexers during
    /// the call, which the child must not touch; the library's process-wide locks are free in the
    /// child. Errors of `prepare`, which change nothing: EBUSY while operations on files or waits
    /// for a word are pending, while registered buffers exist, on a ring while a receive_pool or an
    /// accept_stream exists, and while a peer has not acknowledged zero-copy sends; ENOMEM. Of
    /// `child`: those of creating a multiplexer; then this can only be destroyed. Allocates:
    /// `child`. Blocks: `prepare`, until the kernel has returned its requests: at most about
    /// limits::fork_rounds_max milliseconds.
    [[nodiscard]] result<void> notify_fork(fork_step step) noexcept;

    /// Returns the number of operations started and not yet done.
    [[nodiscard]] std::size_t pending() const noexcept {
        return sharing_ == nullptr ? pending_ : pending_of_threads();
    }

    /// Returns whether several threads may use it. Then:
    ///   1. Any thread may start, poll and cancel operations, attach and detach handles, and call
    ///      any other member. Any number may be in run… at once.
    ///   2. A receiver runs, without a lock, on any thread that finds its operation
    ///      complete. Two receivers may run at the same time, those of one operation never.
    ///      A `strand` serialises them.
    ///   3. started() and completed() of a state are for its receivers; other threads call poll(),
    ///      or use an atomic_ sender. The caller of a member of a state keeps it alive during the
    ///      call. A false started() allows nothing: the done signal may be about to be given. Only
    ///      the signal itself, or abandon(), allows another thread to destroy the state.
    ///   4. run() returns 0 only when no thread's receiver is running either.
    [[nodiscard]] bool is_for_threads() const noexcept { return sharing_ != nullptr; }

    /// Returns the multiplexer's time: the steady clock, or simulated time.
    [[nodiscard]] virtual time_point now() const noexcept { return clock::now(); }
    [[nodiscard]] virtual deadline::system_clock::time_point utc_now() const noexcept {
        return deadline::system_clock::now();
    }

    /// Zero-copy sends (uring_options), and how many of them were copied after all. Any thread.
    struct zero_copy_counts {
        std::uint64_t sends = 0;
        std::uint64_t copied = 0;
    };
    [[nodiscard]] virtual zero_copy_counts zero_copy_sends() const noexcept { return {}; }

    /// Returns whether the calling thread owns this or, of several, runs it. Any thread.
    [[nodiscard]] bool is_owner() const noexcept {
        return is_inside() or (sharing_ != nullptr and running_ == this);
    }

    /// Returns the multiplexer that runs on this thread (run…, try_run…, sync_wait()), or null.
    [[nodiscard]] static io_multiplexer* running_here() noexcept { return running_; }

protected:
    // --- for handles, senders and awaitables, through engine.hpp (it defines inline functions)

    friend struct detail::engine;

    [[nodiscard]] result<registration*> attach(const native_handle& native) noexcept;
    [[nodiscard]] result<void> detach(registration& attached) noexcept;

    /// Begins an operation. Returns whether the outcome is known and no receiver is running,
    /// so that the caller may give the signals itself, by signal_both(); otherwise they
    /// follow from the loop.
    [[nodiscard]] inline bool start(detail::operation_record& op,
                                    initiation how = initiation::automatic) noexcept;

    /// Starts an operation that ends with ECANCELED at once. Returns the same as start().
    [[nodiscard]] inline bool refuse(detail::operation_record& op) noexcept;

    /// Gives the signals of an operation that start() has found finished.
    template <class Value, class Done>
    void signal_both(detail::operation_record& op, Value&& value, Done&& done) noexcept;

    /// Implements operation::signal_both while the multiplexer is signalling: sends both signals of
    /// a finished operation, and handles what comes between them.
    template <class Value, class Done>
    void give_both(detail::operation_record& op, Value&& value, Done&& done) noexcept;

    /// Begins an operation for a caller that wants no signals if it completes at once. It then
    /// returns true, and the outcome is in `op`, which is idle again. Otherwise as start(),
    /// but for several threads only `begun`: publish() follows, once the coroutine is
    /// suspended and so may be resumed.
    [[nodiscard]] inline bool start_or_finish(detail::operation_record& op) noexcept;

    /// Begins what start_or_finish() has left `begun`. `op` may be gone when this returns.
    void publish(detail::operation_record& op, initiation how) noexcept;

    /// Completes a started operation if it is ready, and signals only it. Returns whether its value
    /// has been signalled, now or before; `op` may be gone then, or started again. Complexity:
    /// constant, plus the completions since the last call.
    [[nodiscard]] bool poll(detail::operation_record& op) noexcept;

    /// Ends an operation early: with `code` (ECANCELED, ETIMEDOUT), unless it was faster.
    void cancel(detail::operation_record& op, int code) noexcept;

    /// Completes an operation of kind `external` that has its outcome. Any thread.
    void complete_elsewhere(detail::operation_record& op) noexcept;

    /// As post(), but once `item` is invoked, the multiplexer may be destroyed although this has
    /// not returned yet: its destruction waits for that. Any thread.
    void post_last(posted_item& item) noexcept;

    /// Marks a multiplexer as running on this thread while this exists.
    class runs_here {
    public:
        explicit runs_here(io_multiplexer& now) noexcept : before_(std::exchange(running_, &now)) {}
        runs_here(const runs_here&) = delete;
        runs_here& operator=(const runs_here&) = delete;
        ~runs_here() { running_ = before_; }

    private:
        io_multiplexer* before_;
    };

    /// Ends a started operation without signals, before its destruction. Signals no other receiver.
    /// Returns whether that has kept its value from being signalled. Blocks: until the kernel has
    /// released its buffers, and a signal of it that another thread gives has returned.
    bool abandon(detail::operation_record& op) noexcept;

    void forget_registered_buffer(unsigned index) noexcept;

    /// Counts another operation on a handle until release(): for objects that stay between them.
    inline void hold(registration& attached) noexcept;
    inline void release(registration& attached) noexcept;

    /// Provides the kernel with buffers to receive into, `bytes_each` long, if the back end
    /// supports it; returns their name. They stay until forgotten, when no `receive` may be
    /// pending. Allocates: yes.
    [[nodiscard]] virtual std::optional<unsigned> provide_receive_buffers(std::span<std::byte>,
                                                                          std::size_t) noexcept {
        return std::nullopt;
    }
    /// Returns to the kernel a buffer that a `receive` got.
    virtual void return_receive_buffer(unsigned, std::uint32_t) noexcept {}
    virtual void forget_receive_buffers(unsigned) noexcept {}

    /// Starts accepting connections in the back end, for `accept_ahead` operations on this
    /// listener, until end_accepting(). `into` must live until then. Returns false if the back end
    /// does not support it, or already accepts for another stream. Each connection must then be
    /// accepted individually.
    [[nodiscard]] virtual bool begin_accepting(registration&, accept_request&) noexcept { return false; }
    /// Ends it, after an `accept_ahead` has failed and the back end has no connections left.
    virtual void end_accepting(registration&) noexcept {}

    /// Serves a waiting operation of a stream next.
    void prioritise(detail::operation_record& op) noexcept;

    /// Gives a thread access to the engine's state while this exists: takes the lock, if there is
    /// one and this thread does not hold it. For one thread it does nothing.
    class [[nodiscard]] entry {
    public:
        explicit entry(const io_multiplexer& into) noexcept
            : into_(into), has_entered_(into.sharing_ != nullptr and into.enter()) {}
        entry(const entry&) = delete;
        entry& operator=(const entry&) = delete;
        ~entry() {
            if (has_entered_) [[unlikely]]
                into_.leave();
        }

    private:
        const io_multiplexer& into_;
        bool has_entered_;
    };

    /// For several threads: runs it until `done`, which another thread sets by finish_run().
    void run_until(const bool& done) noexcept;
    void finish_run(bool& done) noexcept;

    /// Returns the target of operations that belong to no handle (a sleep).
    [[nodiscard]] registration& no_handle() noexcept { return no_handle_; }

    /// Returns whether the kernel wakes this for a futex word: whether it takes a `wait_word`.
    [[nodiscard]] virtual bool waits_for_words() const noexcept { return false; }
    /// Returns the target of those.
    [[nodiscard]] registration& words() noexcept { return words_; }

    /// Returns whether the loop sleeps until another thread posts something. A simulation does not,
    /// and passes simulated time instead: start() does there what other threads would do.
    [[nodiscard]] virtual bool waits_for_threads() const noexcept { return true; }

    io_multiplexer() noexcept;

    // The interface of a back end, which passes finished operations to `ready_` by finish().

    /// Prepares for this handle, or forgets it.
    virtual result<void> backend_attach(registration& attached) noexcept = 0;
    virtual void backend_detach(registration& attached) noexcept = 0;
    /// Takes an operation on a file, or a barrier, that did not complete at once.
    virtual void backend_submit(detail::operation_record& op) noexcept = 0;
    /// Submits the queued operations without waiting; another thread sleeps in backend_complete.
    virtual void backend_flush() noexcept {}
    /// Requests an early end of an operation in flight, or withdraws and finishes a submitted one.
    virtual void backend_cancel(detail::operation_record& op) noexcept = 0;
    /// Submits the queued operations to the kernel and finishes the complete ones. If none is
    /// complete, waits until one is, or until a wake-up. `until` in the past: do not wait. Errors:
    /// those of the kernel, after all complete operations have been finished.
    virtual result<void> backend_complete(time_point until) noexcept = 0;
    /// Ends a wait of backend_complete, now or the next one. Any thread.
    virtual void backend_wake() noexcept = 0;
    /// Before a fork: takes back all requests from the kernel, which are submitted again later.
    /// No file operation is pending. Errors: those of notify_fork(); then nothing has changed.
    [[nodiscard]] virtual result<void> backend_recall() noexcept { return {}; }
    /// In the child: replaces the parent's kernel objects. Errors: as in creating a multiplexer.
    [[nodiscard]] virtual result<void> backend_renew() noexcept { return {}; }
    /// Calls `visit` for both.
    template <class Visit>
    void for_each_attached(Visit&& visit) noexcept {
        for (const auto& chunk : chunks_) {
            for (std::size_t i = 0; i < limits::registrations_per_chunk; ++i)
                if (chunk[i].native.is_valid()) visit(chunk[i]);
        }
    }
    /// Checks one waiting stream operation. By default serves its half by non-blocking calls.
    virtual void backend_poll(detail::operation_record& op) noexcept;
    /// Registers memory with the kernel and returns a name for it, if that is useful.
    [[nodiscard]] virtual std::optional<unsigned> backend_register(std::span<std::byte>) noexcept {
        return std::nullopt;
    }
    virtual void backend_unregister(unsigned) noexcept {}
    /// Returns whether start() may try the operation itself. Called only for a back end that has
    /// called query_before_speculating(), because a mispredicted indirect call would show in the
    /// cost of a ready read.
    [[nodiscard]] virtual bool may_speculate(const detail::operation_record&) const noexcept { return true; }
    void query_before_speculating() noexcept { queries_before_speculating_ = true; }

    /// Queues the signals for the outcome in `op`; only the first with `op.notification_pending`.
    inline void finish(detail::operation_record& op) noexcept;
    /// As finish(), but gives the signals at once if they would be next anyway, because with many
    /// operations in flight the queue costs time. From within backend_complete only, with no work
    /// half done there: `op` may be gone afterwards, and its receivers may have done anything.
    inline void finish_directly(detail::operation_record& op) noexcept;
    /// Comes before finish_directly: the number of operations that the kernel completed together.
    inline void record_completions(unsigned count) noexcept;
    /// Queues the second signal, once the kernel has released the buffers of the operation.
    void finish_notification(detail::operation_record& op) noexcept;
    /// Removes an operation that the kernel does not know of from its queue and finishes it with
    /// `code`. If it is a write of which a part has been sent, the operations after it end with
    /// ECANCELED: they must not be sent after the gap.
    void withdraw(detail::operation_record& op, int code) noexcept;
    void mark_dirty(registration::half& half) noexcept;
    /// Passes every dirty half with waiting operations to `serve(half)`.
    template <class Serve>
    void serve_dirty(Serve&& serve) noexcept;
    /// Serves one half that has become ready. Returns whether operations still wait.
    bool serve_half(registration::half& half) noexcept;

    // Written by the owner alone, read by a watchdog without ordering: relaxed, no exchange.
    void begin_turn() noexcept { turn_.store((turn() + 1) | 1U, std::memory_order_relaxed); }
    void end_turn() noexcept { turn_.store((turn() | 1U) + 1, std::memory_order_relaxed); }

    /// A back end calls these around its sleep. False: do not sleep, an item was posted.
    [[nodiscard]] inline bool prepare_to_sleep() noexcept;
    /// Returns whether a thread is between the two calls, so that others leave wake-ups to it.
    [[nodiscard]] bool another_sleeps() const noexcept;
    inline void woke_up() noexcept;
    /// For a back end whose own threads have pushed operations for the loop. Any thread.
    void wake_if_sleeping() noexcept;
    /// Returns whether the back end's own threads have pushed operations. Called before each sleep.
    [[nodiscard]] virtual bool backend_has_news() const noexcept { return false; }
    /// Tries an operation that must not wait, and that start() has not tried or has tried without
    /// success. By default by a call that does not wait.
    [[nodiscard]] virtual bool backend_attempt(detail::operation_record& op) noexcept;
    /// Returns whether the last backend_complete found that no operation can ever complete without
    /// an action from outside. Only a simulation can know.
    [[nodiscard]] virtual bool backend_is_stalled() const noexcept { return false; }

    /// Waits for other threads to leave complete_elsewhere() and post_last(). The destructor of a
    /// back end calls it first, while backend_wake() works. Blocks: for a few instructions.
    void let_finish() noexcept;

    /// Makes every operation on this end with the error of its target inside start(). Nothing is
    /// ever pending on it, and it must not be destroyed. Any thread may then use it.
    void refuse_all() noexcept;

    /// For a back end that submits many operations in one system call. While many operations
    /// complete in one pass (limits.hpp), those on sockets that receivers start are only queued.
    void batch_starts() noexcept { batches_starts_ = true; }

    /// Enables several threads; a back end that implements backend_flush() calls it first.
    /// Errors: ENOMEM. Allocates: its lock.
    [[nodiscard]] result<void> share() noexcept;

    operation_queue ready_;
    dirty_list dirty_;

private:
    struct sharing;
    class held;
    class outside;
    struct free_sharing {
        void operator()(sharing* of) const noexcept;
    };

    /// Returns whether the calling thread may access the engine's state.
    [[nodiscard]] bool is_inside() const noexcept {
        // relaxed: a thread finds its own mark only if it put it there.
        return owner_.load(std::memory_order_relaxed) == &thread_mark_;
    }
    void ensure_owner() noexcept {
        if (not is_inside()) [[unlikely]]
            become_owner();
    }
    void become_owner() noexcept;

    // For several threads: io_multiplexer_threads.cpp.
    [[nodiscard]] bool enter() const noexcept;
    void leave() const noexcept;
    [[nodiscard]] std::size_t pending_of_threads() const noexcept;
    void end_refused(detail::operation_record& op, int code) noexcept;
    void signal_refused(detail::operation_record& op) noexcept;
    [[nodiscard]] bool abandon_refused(detail::operation_record& op) noexcept;
    [[nodiscard]] bool start_outside(detail::operation_record& op, initiation how) noexcept;
    [[nodiscard]] bool refuse_outside(detail::operation_record& op) noexcept;
    [[nodiscard]] bool start_or_finish_outside(detail::operation_record& op) noexcept;
    [[nodiscard]] bool poll_outside(detail::operation_record& op) noexcept;
    void cancel_outside(detail::operation_record& op, int code) noexcept;
    [[nodiscard]] bool abandon_pinned(detail::operation_record& op) noexcept;
    [[nodiscard]] bool abandon_shared(detail::operation_record& op) noexcept;
    [[nodiscard]] bool begin_shared(detail::operation_record& op, initiation how) noexcept;
    [[nodiscard]] bool try_shared(detail::operation_record& op) noexcept;
    [[nodiscard]] bool leave_queue(detail::operation_record& op, registration::half& half) noexcept;
    [[nodiscard]] bool stay_in_queue(detail::operation_record& op, registration::half& half) noexcept;
    void deliver(detail::operation_record& op) noexcept;
    void signal_shared(detail::operation_record& op) noexcept;
    void invoke_shared(posted_item& item) noexcept;
    void publish_work() noexcept;
    void notify_one() noexcept;
    void hand_off() noexcept;
    [[nodiscard]] bool has_work() const noexcept;
    [[nodiscard]] bool is_receiving() const noexcept;
    [[nodiscard]] bool is_in_user_code() const noexcept;
    [[nodiscard]] bool begin_external_shared(detail::operation_record& op, external_work& work) noexcept;
    void call_pinned(detail::operation_record& op, void (external_work::*function)() noexcept) noexcept;
    void unpin(detail::operation_record& op) noexcept;
    [[nodiscard]] bool is_exhausted_shared() const noexcept;
    enum class share_of_work : std::uint8_t { all, io, timers, posted };
    result<int> run_shared(share_of_work what, int max, time_point until,
                           const bool* done = nullptr) noexcept;
    result<int> pass_shared(share_of_work what, int max, time_point until) noexcept;
    int invoke_some_shared(int max) noexcept;
    int signal_some_shared(int max) noexcept;
    [[nodiscard]] result<void> wait_shared(time_point until) noexcept;
    void follow(time_point until) noexcept;
    void fall_asleep() noexcept;
    void awake() noexcept;

    inline void reset(detail::operation_record& op) noexcept;
    [[nodiscard]] bool begin(detail::operation_record& op, initiation how) noexcept;
    [[nodiscard]] bool begin_batched(detail::operation_record& op) noexcept;
    [[nodiscard]] bool wants_attempt(const detail::operation_record& op, initiation how) noexcept;
    [[nodiscard]] bool is_usual(const detail::operation_record& op, const registration::half& half,
                                initiation how) const noexcept;
    [[nodiscard]] bool begin_uncommon_path(detail::operation_record& op, initiation how) noexcept;
    [[nodiscard]] bool begin_on(detail::operation_record& op, std::ptrdiff_t moved) noexcept;
    [[nodiscard]] bool record_attempt(detail::operation_record& op, bool finished) noexcept;
    [[nodiscard]] bool begin_slow_path(detail::operation_record& op) noexcept;
    [[nodiscard]] bool begin_external(detail::operation_record& op) noexcept;
    void take_completed_elsewhere() noexcept {
        if (not completed_elsewhere_.empty()) [[unlikely]]
            finish_completed_elsewhere();
    }
    void finish_completed_elsewhere() noexcept;
    void poll_external(detail::operation_record& op) noexcept;
    void inspect(detail::operation_record& op) noexcept;
    [[nodiscard]] static bool is_over(const detail::operation_record& op) noexcept;
    [[nodiscard]] static bool can_refuse_to_wait(const detail::operation_record& op) noexcept;
    [[nodiscard]] bool has_no_time(const detail::operation_record& op) const noexcept;
    void arm_timer(detail::operation_record& op) noexcept;
    void disarm_timer(detail::operation_record& op) noexcept;
    void expire(detail::operation_record& op) noexcept;
    inline void leave_to_loop(detail::operation_record& op) noexcept;
    void enqueue(detail::operation_record& op) noexcept;
    [[nodiscard]] inline progress serve_one_piece(registration::half& half) noexcept;
    [[nodiscard]] bool serve_longer(registration::half& half) noexcept;
    inline void retire(detail::operation_record& op) noexcept;
    bool signal(detail::operation_record& op) noexcept;
    inline int signal_ready(int max) noexcept;
    inline result<int> complete(int max, time_point until) noexcept;
    int expire_some(int max) noexcept;
    int invoke_some(int max) noexcept;
    int idle_value() const noexcept { return pending_ == 0 ? nothing_pending : nothing_ready; }
    inline result<int> run_once(int max, time_point until) noexcept;
    inline result<int> turn_once(int max, time_point until) noexcept;
    inline result<int> turn_until(time_point until, int max) noexcept;
    [[nodiscard]] bool is_exhausted() const noexcept;
    registration* take_registration() noexcept;
    [[nodiscard]] bool can_fork() noexcept;

    // Its address identifies the thread, at a lower cost than a thread id.
    static inline thread_local constinit char thread_mark_ = 0;
    static inline thread_local constinit io_multiplexer* running_ = nullptr;
    // For several threads: the multiplexer whose loop runs on this thread, and the user code on it.
    static inline thread_local constinit const io_multiplexer* looping_ = nullptr;
    static inline thread_local constinit const outside* innermost_ = nullptr;
    // Operations that ended on this thread in start(), while an outer start() gives their signals.
    static inline thread_local constinit operation_queue* refused_ = nullptr;

    std::size_t pending_ = 0;
    std::size_t registered_buffers_ = 0;
    std::size_t queued_ = 0;  // operations for the back end: started, not done, not in `ready_`
    // The thread inside: written once, by the owner; of several, by each that takes the lock.
    mutable std::atomic<const void*> owner_{nullptr};
    std::unique_ptr<sharing, free_sharing> sharing_;  // null: for one thread
    initiation initiation_ = initiation::automatic;
    bool signalling_ = false;
    bool batches_starts_ = false;
    bool refuses_all_ = false;
    bool queries_before_speculating_ = false;
    bool is_batching_ = false;  // the running receivers belong to one of many completions
    int finished_ = 0;          // operations finished since the last receiver ran
    int inline_left_;
    int direct_left_ = 0;  // signals that this pass of complete() may still give in the back end
    int passes_without_backend_ = 0;
    timer_heap timers_;
    registration no_handle_;
    registration words_;  // as for files, without an order
    registration_list free_;
    std::vector<std::unique_ptr<registration[]>> chunks_;

    // Shared with posting threads.
    intrusive_mpsc_queue<posted_item, &posted_item::link> posted_;
    intrusive_mpsc_queue<detail::operation_record, &detail::operation_record::handoff_link>
        completed_elsewhere_;
    std::atomic<int> completing_{0};  // threads within complete_elsewhere() or post_last()
    std::atomic<bool> sleeping_{false};
    std::atomic<int> guards_{0};
    std::atomic<std::uint64_t> turn_{0};
};

}  // namespace sluice::io
