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

/// Multiplexes the i/o of many handles on one thread, or on several (WG21 P2052R0).
///
/// Nothing happens behind the caller's back: operations advance, and receivers are signalled, only inside
/// start(), poll(), complete_io…, timeout_io… and run…, on the thread that calls them. Between handles, and
/// between requests on one file, there is no order. Requests in one direction of one stream are served in the
/// order they were started.
///
/// Functions that count return a positive number, how many they completed (or invoked); `nothing_ready`, a
/// negative number, if some are pending and none was ready; 0 if nothing is pending. A maximum that is
/// negative (`unlimited`) means all that one pass serves, see limits::completions_per_pass_max. An error of
/// the kernel (of epoll_pwait2 or io_uring_enter) is returned if nothing was completed before it; otherwise
/// by the next call, if it persists. The operations stay pending.
///
/// Only run…, and try_run… with a time, wait. complete_io…, timeout_io… and invoke_posted_items… never do: a
/// time limits their execution time (P2052R0 4.3.1, 4.3.2).
///
/// Thread safety: one for a single thread belongs to the thread that first starts, completes or runs
/// something on it; ENSURE checks. Only post(), what atomic_ senders make, and external_work::complete() may
/// be used from any thread. One for several threads (best_available(n)) may be used from any thread, and run
/// by several at once: see is_for_threads(). Allocates: attaching a handle, amortised; and post() of a
/// callable. Nothing else, ever.
///
/// Invariants:
///   0. Only a thread that is inside touches anything but the atomic members: the owner, or, of a multiplexer
///   for several threads, the one that holds its lock. See io_multiplexer_threads.cpp.
///   1. `pending_` counts the operations between start() and the done signal.
///   2. An operation is in exactly one place: its registration's queue, the back end's, with another thread
///   or
///      in `completed_elsewhere_`, or in `ready_`.
///   3. `signalling_` is true exactly while a receiver runs; operations that finish meanwhile go to `ready_`,
///   so
///      receivers never nest and the stack does not grow.
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

    /// "io_uring", "epoll" or "simulated".
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;

    /// Completes up to `max` operations that are ready. Ignores deadlines. Errors: those of the kernel.
    /// Blocks: no.
    result<int> complete_io(int max = unlimited) noexcept;

    /// As complete_io, in as many passes as it takes: until `max` are completed, nothing more is ready or the
    /// time is up. Makes one pass at least.
    result<int> complete_io_within(duration within, int max = unlimited) noexcept;
    result<int> complete_io_until(time_point until, int max = unlimited) noexcept;

    /// Ends up to `max` operations whose deadline has passed: cancels them and completes those that could be
    /// cancelled at once, with ETIMEDOUT. Complexity: O(log n) amortised for each that has passed. Errors:
    /// none. Blocks: no.
    result<int> timeout_io(int max = unlimited) noexcept;

    /// As timeout_io, in as many passes as it takes: until `max` are ended, no deadline has passed or the
    /// time is up.
    result<int> timeout_io_within(duration within, int max = unlimited) noexcept;
    result<int> timeout_io_until(time_point until, int max = unlimited) noexcept;

    /// Has `item` invoked by this multiplexer's thread. Any thread. Allocates: nothing. Blocks: no.
    void post(posted_item& item) noexcept;

    /// Has `invocable()` invoked, once, by this multiplexer's thread. Any thread.
    /// Errors: ENOMEM. Allocates: one node for the callable, freed after it has run. Blocks: no.
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
    /// As invoke_posted_items, in as many passes as it takes: until `max` are invoked, none is left or the
    /// time is up.
    result<int> invoke_posted_items_within(duration within, int max = unlimited) noexcept;
    result<int> invoke_posted_items_until(time_point until, int max = unlimited) noexcept;

    /// Does everything there is to do (posted items, deadlines, completions), waiting until there is
    /// something. Returns how many; 0 when nothing is pending and no `work_guard` promises more, so that
    /// `while (m.run().value_or(0) > 0) {}` runs all. Errors: those of the kernel; the operations stay
    /// pending. Blocks: until something happened; try_run never; try_run_for and try_run_until at most until
    /// the time.
    result<int> run(int max = unlimited) noexcept;
    result<int> try_run(int max = unlimited) noexcept;
    result<int> try_run_for(duration within, int max = unlimited) noexcept;
    result<int> try_run_until(time_point until, int max = unlimited) noexcept;

    /// While one exists, run() waits for posted items although no i/o is pending; what its thread has posted
    /// is invoked before run() returns zero. May be made, and destroyed, on any thread.
    class work_guard {
    public:
        explicit work_guard(io_multiplexer& multiplexer) noexcept : multiplexer_(&multiplexer) {
            multiplexer.guards_.fetch_add(1,
                                          std::memory_order_relaxed);  // a hint to the loop, orders nothing
        }
        work_guard(work_guard&& other) noexcept : multiplexer_(std::exchange(other.multiplexer_, nullptr)) {}
        work_guard& operator=(work_guard&&) = delete;
        ~work_guard();

    private:
        io_multiplexer* multiplexer_;
    };

    /// How operations begin that do not say so themselves. `automatic`: a non-blocking call first, unless
    /// such calls have lately found the handle not ready; on io_uring, those on sockets that are started
    /// while many others complete are batched.
    void set_initiation(initiation how) noexcept { initiation_ = how; }

    /// Memory for i/o that the kernel knows of beforehand, where the back end can use that (io_uring). It
    /// must go before the multiplexer. By the owning thread, or before there is one. Errors: ENOMEM, EINVAL
    /// for no bytes. Allocates: the memory, by mmap; pinned, within RLIMIT_MEMLOCK.
    [[nodiscard]] result<registered_buffer> allocate_registered_buffer(std::size_t bytes) noexcept;

    /// A number for a watchdog: odd during a turn of try_run… and run, even while the loop sleeps or is
    /// outside of them, and another one for each turn. An odd number that stays the same belongs to a turn
    /// that does not end. Any thread.
    [[nodiscard]] std::uint64_t turn() const noexcept { return turn_.load(std::memory_order_relaxed); }

    /// The steps of notify_fork().
    enum class fork_step : std::uint8_t { prepare, parent, child };
    /// Keeps this usable around fork(2): `prepare` before it, then `parent` or `child` in each process. After
    /// `prepare` no request is with the kernel. The child gets a ring, or an epoll instance, of its own,
    /// since the parent's cannot be shared. Pending operations continue in both processes: both wait for the
    /// same connections and bytes. Timers and posted items continue in both, too. An external_work, such as a
    /// lookup of a name or a wait for a lock, has its threads in the parent only: complete or cancel it
    /// before the fork, because in the child it may never complete.
    ///
    /// To be called while no other thread uses this, by its owner if it is for one thread and has one; from
    /// a receiver or posted item, too. Other threads may use other multiplexers meanwhile, which the child
    /// must not touch; the locks that the library has for the whole process are free in the child. Errors of
    /// `prepare`, which change nothing: EBUSY while operations on files or waits for a word are pending,
    /// while registered buffers exist, on a ring while a receive_pool or an accept_stream exists, and while a
    /// peer has not acknowledged bytes that were sent without a copy; ENOMEM. Of `child`: those of making a
    /// multiplexer; then this can only be destroyed. Allocates: `child`. Blocks: `prepare`, until the kernel
    /// has returned its requests: about limits::fork_rounds_max milliseconds at most.
    [[nodiscard]] result<void> notify_fork(fork_step step) noexcept;

    /// Operations started and not yet done.
    [[nodiscard]] std::size_t pending() const noexcept {
        return sharing_ == nullptr ? pending_ : pending_of_threads();
    }

    /// Whether several threads may use it. Then:
    ///   1. Any thread may start, poll and cancel operations, attach and detach handles, and call any other
    ///   member. Any number may be in run… at once.
    ///   2. A receiver runs on whichever thread finds its operation complete, no lock held: two receivers may
    ///   run at the same time, those of one operation never. A `strand` makes them take turns.
    ///   3. started() and completed() of a state are for its receivers; other threads call poll(), or use an
    ///   atomic_ sender. The caller of a member of a state keeps it alive during the call. That started() is
    ///   false allows nothing: the done signal may be about to be given. Only the signal itself, or
    ///   abandon(), allows another thread to destroy the state.
    ///   4. run() returns 0 only when no thread's receiver is running either.
    [[nodiscard]] bool is_for_threads() const noexcept { return sharing_ != nullptr; }

    /// What the multiplexer takes the time to be: the steady clock, or simulated time.
    [[nodiscard]] virtual time_point now() const noexcept { return clock::now(); }
    [[nodiscard]] virtual deadline::system_clock::time_point utc_now() const noexcept {
        return deadline::system_clock::now();
    }

    /// Writes whose bytes the network device was to take from their own buffers (uring_options), and how many
    /// of those were copied after all. Any thread.
    struct uncopied_sends {
        std::uint64_t sends = 0;
        std::uint64_t copied = 0;
    };
    [[nodiscard]] virtual uncopied_sends uncopied() const noexcept { return {}; }

    /// Whether the calling thread is the one this belongs to, or, of several, one that is running it. Any
    /// thread.
    [[nodiscard]] bool is_owner() const noexcept {
        return is_inside() or (sharing_ != nullptr and running_ == this);
    }

    /// The multiplexer that runs on this thread now, in run…, try_run… or sync_wait(); null for none.
    [[nodiscard]] static io_multiplexer* running_here() noexcept { return running_; }

protected:
    // --- for handles, senders and awaitables, which come here through engine.hpp, which
    // defines the inline functions

    friend struct detail::engine;

    [[nodiscard]] result<registration*> attach(const native_handle& native) noexcept;
    [[nodiscard]] result<void> detach(registration& attached) noexcept;

    /// Begins an operation. Returns whether the outcome is known and no receiver is running, so that the
    /// caller may give the signals itself, by signal_both(); otherwise they follow from the loop.
    [[nodiscard]] inline bool start(detail::operation_record& op,
                                    initiation how = initiation::automatic) noexcept;

    /// Starts an operation that ends with ECANCELED at once. Returns the same as start().
    [[nodiscard]] inline bool refuse(detail::operation_record& op) noexcept;

    /// Gives the signals of an operation that start() has found finished.
    template <class Value, class Done>
    void signal_both(detail::operation_record& op, Value&& value, Done&& done) noexcept;

    /// What operation::signal_both does, while the multiplexer is signalling: the signals of a finished
    /// operation, and what comes between them.
    template <class Value, class Done>
    void give_both(detail::operation_record& op, Value&& value, Done&& done) noexcept;

    /// Begins an operation for a caller that wants no signals if it is done at once: returns true, and the
    /// outcome is in `op`, which is idle again. Otherwise as start(), but for several threads only
    /// `begun`: publish() follows, once the coroutine is suspended and so may be resumed.
    [[nodiscard]] inline bool start_or_finish(detail::operation_record& op) noexcept;

    /// Begins an operation that start_or_finish() has left `begun`. `op` may be gone when this returns.
    void publish(detail::operation_record& op, initiation how) noexcept;

    /// Completes a started operation if it is ready, and signals it, and no other. Returns
    /// whether its value has been signalled, now or before; `op` may be gone then, or started again.
    /// Complexity: constant, but for what the kernel has completed since it was last asked.
    [[nodiscard]] bool poll(detail::operation_record& op) noexcept;

    /// Ends a started operation early; it completes with `code` (ECANCELED, ETIMEDOUT) unless it was faster.
    void cancel(detail::operation_record& op, int code) noexcept;

    /// Completes an operation of kind `external` that has its outcome. Any thread.
    void complete_elsewhere(detail::operation_record& op) noexcept;

    /// As post(), but once `item` is invoked, the multiplexer may be destroyed although this has not returned
    /// yet: its destruction waits for that. Any thread.
    void post_last(posted_item& item) noexcept;

    /// Makes a multiplexer the one that runs on this thread, for as long as this exists.
    class runs_here {
    public:
        explicit runs_here(io_multiplexer& now) noexcept : before_(std::exchange(running_, &now)) {}
        runs_here(const runs_here&) = delete;
        runs_here& operator=(const runs_here&) = delete;
        ~runs_here() { running_ = before_; }

    private:
        io_multiplexer* before_;
    };

    /// Ends a started operation without signals, before its destruction. Signals no other receiver. Returns
    /// whether that has kept its value from being signalled. Blocks: until the kernel has released its
    /// buffers, and a signal of it that another thread gives has returned.
    bool abandon(detail::operation_record& op) noexcept;

    void forget_registered_buffer(unsigned index) noexcept;

    /// Counts one more operation on a handle: for what goes on between its operations, until release().
    inline void hold(registration& attached) noexcept;
    inline void release(registration& attached) noexcept;

    /// Gives the kernel buffers to receive into, `bytes_each` long, where the back end can use that; returns
    /// their name. They must stay until forgotten, when no `receive` may be pending. Allocates: yes.
    [[nodiscard]] virtual std::optional<unsigned> provide_receive_buffers(std::span<std::byte>,
                                                                          std::size_t) noexcept {
        return std::nullopt;
    }
    /// Lets the kernel have a buffer again that a `receive` got.
    virtual void return_receive_buffer(unsigned, std::uint32_t) noexcept {}
    virtual void forget_receive_buffers(unsigned) noexcept {}

    /// Has the back end take connections by itself, for `accept_ahead` operations on this listener, until
    /// end_accepting(). `into` stays until then. False if it cannot, or does so for somebody else already:
    /// then each is to be accepted.
    [[nodiscard]] virtual bool begin_accepting(registration&, accept_request&) noexcept { return false; }
    /// When an `accept_ahead` has ended with an error, after which none of the listener's connections is left
    /// with the back end.
    virtual void end_accepting(registration&) noexcept {}

    /// Has a stream's operation that waits served next.
    void bring_forward(detail::operation_record& op) noexcept;

    /// Lets a thread touch what the engine's functions touch: takes the lock, for as long as this exists, if
    /// there is one and this thread does not hold it. For one thread it does nothing.
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

    /// For one for several threads: runs it until `done`, which another thread sets by finish_run().
    void run_until(const bool& done) noexcept;
    void finish_run(bool& done) noexcept;

    /// What an operation that belongs to no handle (a sleep) has as its target.
    [[nodiscard]] registration& no_handle() noexcept { return no_handle_; }

    /// Whether the kernel wakes this for a futex word: whether it takes a `wait_word`.
    [[nodiscard]] virtual bool waits_for_words() const noexcept { return false; }
    /// The target of those.
    [[nodiscard]] registration& words() noexcept { return words_; }

    /// Whether the loop sleeps until another thread posts something. A simulation does not, and passes
    /// simulated time instead: what other threads would do, start() does there.
    [[nodiscard]] virtual bool waits_for_threads() const noexcept { return true; }

    io_multiplexer() noexcept;

    // What a back end implements. `ready_` takes what it has finished, through finish().

    /// Makes ready to work with this handle, or forgets it.
    virtual result<void> backend_attach(registration& attached) noexcept = 0;
    virtual void backend_detach(registration& attached) noexcept = 0;
    /// Takes an operation on a file, or a barrier, that could not be done at once.
    virtual void backend_submit(detail::operation_record& op) noexcept = 0;
    /// While another thread sleeps in backend_complete: gives the kernel what is waiting, without waiting.
    virtual void backend_flush() noexcept {}
    /// Asks for an operation in flight to end early, or takes a submitted one back and finishes it.
    virtual void backend_cancel(detail::operation_record& op) noexcept = 0;
    /// Gives the kernel what is waiting, and finishes what is complete; if nothing is, waits until then or a
    /// wake-up. `until` in the past: do not wait. Errors: those of the kernel, after it has finished all that
    /// is complete.
    virtual result<void> backend_complete(time_point until) noexcept = 0;
    /// Ends a wait of backend_complete, now or the next one. Any thread.
    virtual void backend_wake() noexcept = 0;
    /// Before a fork: takes back all that the kernel has, so that it is given again afterwards. Operations on
    /// files are not pending. Errors: those of notify_fork(), and then nothing has changed.
    [[nodiscard]] virtual result<void> backend_recall() noexcept { return {}; }
    /// In the child: replaces what belongs to the parent. Errors: as in making a multiplexer.
    [[nodiscard]] virtual result<void> backend_renew() noexcept { return {}; }
    /// For those two.
    template <class Visit>
    void for_each_attached(Visit&& visit) noexcept {
        for (const auto& chunk : chunks_) {
            for (std::size_t i = 0; i < limits::registrations_per_chunk; ++i)
                if (chunk[i].native.is_valid()) visit(chunk[i]);
        }
    }
    /// Looks at one stream operation that waits. By default serves its half by non-blocking calls.
    virtual void backend_poll(detail::operation_record& op) noexcept;
    /// Makes memory known to the kernel and returns a name for it, if that is of use.
    [[nodiscard]] virtual std::optional<unsigned> backend_register(std::span<std::byte>) noexcept {
        return std::nullopt;
    }
    virtual void backend_unregister(unsigned) noexcept {}
    /// Whether start() may try the operation itself. Asked only of a back end that has called
    /// ask_before_speculating(): even an indirect call that is predicted wrong would show in the cost of a
    /// ready read.
    [[nodiscard]] virtual bool may_speculate(const detail::operation_record&) const noexcept { return true; }
    void ask_before_speculating() noexcept { asks_before_speculating_ = true; }

    /// The outcome stands in `op`: queues the signals. With `op.notification_pending` only the first of them.
    inline void finish(detail::operation_record& op) noexcept;
    /// As finish(), but gives the signals at once if they would be the next to be given anyway: with many in
    /// flight, the way through the queue shows. From within backend_complete only, and with nothing half done
    /// there: `op` may be gone afterwards, and its receivers may have done anything.
    inline void finish_directly(detail::operation_record& op) noexcept;
    /// To be called before finish_directly: how many the kernel has completed together.
    inline void note_completions(unsigned count) noexcept;
    /// The kernel no longer reads the buffers of an operation with `notification_pending`: queues the second
    /// signal.
    void finish_notification(detail::operation_record& op) noexcept;
    /// Takes an operation the kernel does not know of out of its queue and finishes it with `code`. If it is
    /// a write that has partly gone, those behind it end with ECANCELED: they must not be sent behind the
    /// gap.
    void withdraw(detail::operation_record& op, int code) noexcept;
    void mark_dirty(registration::half& half) noexcept;
    /// Gives every dirty half on which something waits to `serve(half)`.
    template <class Serve>
    void serve_dirty(Serve&& serve) noexcept;
    /// Serves one half that has become ready. Returns whether operations still wait.
    bool serve_half(registration::half& half) noexcept;

    // By the owner alone, and read by a watchdog that needs no order: relaxed, and no read-modify-write.
    void begin_turn() noexcept { turn_.store((turn() + 1) | 1U, std::memory_order_relaxed); }
    void end_turn() noexcept { turn_.store((turn() | 1U) + 1, std::memory_order_relaxed); }

    /// To be called by a back end around its sleep: false means do not sleep, something was posted.
    [[nodiscard]] inline bool prepare_to_sleep() noexcept;
    /// Whether a thread is between the two calls. Another one then leaves wake-ups to it.
    [[nodiscard]] bool another_sleeps() const noexcept;
    inline void woke_up() noexcept;
    /// For a back end whose own threads have pushed something for the loop. Any thread.
    void wake_if_sleeping() noexcept;
    /// Whether the back end's own threads have pushed something; asked before every sleep.
    [[nodiscard]] virtual bool backend_has_news() const noexcept { return false; }
    /// Tries an operation that must not wait, and that start() has not tried or in vain. By default by a call
    /// that does not wait.
    [[nodiscard]] virtual bool backend_attempt(detail::operation_record& op) noexcept;
    /// Whether the last backend_complete found that nothing can ever happen again unless somebody outside
    /// does something. Only a simulation can know.
    [[nodiscard]] virtual bool backend_is_stalled() const noexcept { return false; }

    /// Waits for other threads to leave complete_elsewhere() and post_last(). The destructor of a back end
    /// must call it first, while backend_wake() still works. Blocks: for some instructions of those threads.
    void let_finish() noexcept;

    /// Makes this a multiplexer of which every operation ends with the error of its target inside start().
    /// Nothing is ever pending on it, and it must not be destroyed. Any thread may then use it.
    void refuse_all() noexcept;

    /// For a back end that submits many operations in one system call: those on sockets that receivers start
    /// while limits::crowd or more have completed in one pass are queued, not tried.
    void batch_crowds() noexcept { batches_crowds_ = true; }

    /// Makes this a multiplexer for several threads; by a back end that implements backend_flush(), before
    /// anything is done with it. Errors: ENOMEM. Allocates: its lock.
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

    /// Whether the calling thread may touch the engine.
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
    void settle_shared() noexcept;
    void notify_one() noexcept;
    void hand_on() noexcept;
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
    [[nodiscard]] bool begin_unusually(detail::operation_record& op, initiation how) noexcept;
    [[nodiscard]] bool begin_on(detail::operation_record& op, std::ptrdiff_t moved) noexcept;
    [[nodiscard]] bool note_attempt(detail::operation_record& op, bool finished) noexcept;
    [[nodiscard]] bool begin_slowly(detail::operation_record& op) noexcept;
    [[nodiscard]] bool begin_external(detail::operation_record& op) noexcept;
    void take_completed_elsewhere() noexcept {
        if (not completed_elsewhere_.empty()) [[unlikely]]
            finish_completed_elsewhere();
    }
    void finish_completed_elsewhere() noexcept;
    void poll_external(detail::operation_record& op) noexcept;
    void look_at(detail::operation_record& op) noexcept;
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

    // Its address tells threads apart, cheaper than their names.
    static inline thread_local constinit char thread_mark_ = 0;
    static inline thread_local constinit io_multiplexer* running_ = nullptr;
    // For several threads: the multiplexer whose loop runs on this thread, and the user code on it.
    static inline thread_local constinit const io_multiplexer* looping_ = nullptr;
    static inline thread_local constinit const outside* innermost_ = nullptr;
    // Operations that ended on this thread in start(), while an outer start() gives their signals.
    static inline thread_local constinit operation_queue* refused_ = nullptr;

    std::size_t pending_ = 0;
    std::size_t registered_buffers_ = 0;
    std::size_t queued_ = 0;  // operations that need the back end: started, not done, not in `ready_`
    // Who is inside: written once, by the owner; for several threads by each that takes the lock.
    mutable std::atomic<const void*> owner_{nullptr};
    std::unique_ptr<sharing, free_sharing> sharing_;  // null: for one thread
    initiation initiation_ = initiation::automatic;
    bool signalling_ = false;
    bool batches_crowds_ = false;
    bool refuses_all_ = false;
    bool asks_before_speculating_ = false;
    bool is_crowded_ = false;  // the receivers now running are those of many
    int finished_ = 0;         // operations finished since receivers last ran
    int inline_left_;
    int direct_left_ = 0;  // operations this pass of complete() may still signal from within the back end
    int passes_without_backend_ = 0;
    timer_heap timers_;
    registration no_handle_;
    registration words_;  // like a file: in no order
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
