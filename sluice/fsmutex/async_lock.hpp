#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sluice/fsmutex/kernel_lock.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/fsmutex/wake_up.hpp"
#include "sluice/io/awaitable.hpp"
#include "sluice/io/task.hpp"

// Locking without blocking the calling thread. A request has its place in the order like any other. The loop
// sleeps until the request is granted:
//
//   - memory_map: io_uring waits for the futex word (Linux 6.7 or newer).
//   - atomic_append, byte_ranges, lock_files, on a volume of this host: a thread of the mutex waits for the
//     kernel's lock and wakes the loop. A mutex has at most limits::lock_threads_max such threads.
//   - Otherwise timers poll, after pauses from 50 us, doubled up to 16 ms. Each poll occupies the loop for a
//     few system calls.
//
// A request ends early, by its deadline or because it is cancelled, without waiting for the holder.
// Afterwards neither a slot, a lock, nor a waiting thread of it exists.

namespace sluice::fsmutex {

/// A request that is polled instead of waited for. Thread safety: one thread at a time.
class lock_attempt {
public:
    /// Takes a place in the order. Errors, Allocates: as shared_fs_mutex::lock; never ETIMEDOUT.
    [[nodiscard]] static result<lock_attempt> begin(shared_fs_mutex& mutex, std::span<const entity> wanted,
                                                    deadline within) noexcept;

    /// Whether it is granted. Errors: ETIMEDOUT once the deadline has passed; as lock. After an error it is
    /// over.
    [[nodiscard]] result<bool> poll() noexcept;
    /// Makes `op` what to wait for before polling again. end_wait() follows, once the operation is done.
    void begin_wait(io::io_multiplexer& loop, io::operation& op) noexcept;
    /// Errors: ECANCELED; others mean no more than success, that is, to poll again.
    [[nodiscard]] result<void> end_wait(const io::operation& op) noexcept;
    /// The guard, once poll() has said true.
    [[nodiscard]] fs_mutex_guard take() noexcept { return std::move(held_); }

private:
    lock_attempt(shared_fs_mutex& mutex, entity_set wanted, const ticket& place, bool is_granted,
                 deadline within) noexcept;

    [[nodiscard]] std::chrono::nanoseconds time_left() const noexcept;
    [[nodiscard]] io::word_wait prepare_wake() noexcept;
    void look_after_deaths() noexcept;

    shared_fs_mutex* mutex_;
    entity_set wanted_;
    fs_mutex_guard held_;
    std::shared_ptr<wake_up> told_;  // while a thread of the mutex, or another request, is to wake us
    bool is_granted_;
    clock_source::steady_time end_;
    std::uint64_t pauses_ = 0;
    std::chrono::nanoseconds deaths_after_{};
    clock_source::steady_time looked_;
};

/// Waits until it is worth polling an attempt again. The attempt outlives it. Errors: ECANCELED; others, as
/// for lock_attempt::end_wait().
class wake_sender {
public:
    using result_type = result<void>;

    wake_sender(io::io_multiplexer& loop, lock_attempt& waiting) noexcept
        : loop_(&loop), waiting_(&waiting) {}

    [[nodiscard]] io::io_multiplexer& multiplexer() const noexcept { return *loop_; }
    void configure(io::operation& op) noexcept { waiting_->begin_wait(*loop_, op); }
    [[nodiscard]] result_type collect(const io::operation& op) noexcept { return waiting_->end_wait(op); }

private:
    io::io_multiplexer* loop_;
    lock_attempt* waiting_;
};

/// `co_await co_lock(loop, mutex, {entity(1), entity(2)}, 10s)` returns the guard. The mutex outlives the
/// task. Errors: as lock; ECANCELED. Suspends: until granted, cancelled, or the deadline passes. Blocks: to
/// end a wait early, until its thread has ended, some ten microseconds. Allocates: the frame; 64 bytes for
/// each wait; as lock.
[[nodiscard]] io::task<result<fs_mutex_guard>> co_lock(io::io_multiplexer& loop, shared_fs_mutex& mutex,
                                                       std::vector<entity> wanted, deadline within = {});

/// The state of a lock requested with async_lock() and connect(). Its receiver gets
/// set_value(result<guard>), and then set_done(), after which this may be destroyed. Not moved from start()
/// to done. Thread safety: the loop's thread.
template <class Receiver>
class lock_operation {
public:
    lock_operation(io::io_multiplexer& loop, shared_fs_mutex& mutex, std::vector<entity> wanted,
                   deadline within, Receiver receiver) noexcept
        : loop_(loop),
          mutex_(mutex),
          wanted_(std::move(wanted)),
          within_(within),
          receiver_(std::move(receiver)) {}
    lock_operation(const lock_operation&) = delete;
    lock_operation& operator=(const lock_operation&) = delete;

    /// May signal before it returns. Errors given to the receiver: as lock.
    void start() noexcept {
        auto begun = lock_attempt::begin(mutex_, wanted_, within_);
        if (not begun) return finish(failure(begun.error()));
        attempt_.emplace(std::move(*begun));
        look();
    }
    /// Ends it early: the receiver gets ECANCELED from the loop, unless the lock is granted before. Without
    /// an effect before start() and after done; may be repeated.
    void cancel() noexcept {
        if (not attempt_ or was_cancelled_) return;
        was_cancelled_ = true;
        if (sleep_) sleep_->cancel();
    }

private:
    // What wakes us between two polls.
    struct alarm {
        lock_operation* self;
        void set_value(const result<void>& outcome) noexcept {
            if (not outcome and outcome.error() == std::errc::operation_canceled) self->was_cancelled_ = true;
        }
        void set_done() noexcept { self->look(); }
    };
    using sleep_connection =
        decltype(io::connect(wake_sender(std::declval<io::io_multiplexer&>(), std::declval<lock_attempt&>()),
                             std::declval<alarm>()));

    void look() noexcept {
        if (was_cancelled_) {
            attempt_.reset();
            return finish(failure({ECANCELED, "lock entities"}));
        }
        const auto granted = attempt_->poll();
        if (not granted) return finish(failure(granted.error()));
        if (*granted) return finish(attempt_->take());
        sleep_.emplace(io::connect(wake_sender(loop_, *attempt_), alarm{this}));
        sleep_->start();
    }
    void finish(result<fs_mutex_guard> outcome) noexcept {
        attempt_.reset();
        receiver_.set_value(std::move(outcome));
        receiver_.set_done();
    }

    io::io_multiplexer& loop_;
    shared_fs_mutex& mutex_;
    std::vector<entity> wanted_;
    deadline within_;
    Receiver receiver_;
    std::optional<lock_attempt> attempt_;
    std::optional<sleep_connection> sleep_;
    bool was_cancelled_ = false;
};

/// What connect() makes a lock_operation of. A value.
struct lock_sender {
    using result_type = result<fs_mutex_guard>;
    io::io_multiplexer* loop;
    shared_fs_mutex* mutex;
    std::vector<entity> wanted;
    deadline within;
};
[[nodiscard]] inline lock_sender async_lock(io::io_multiplexer& loop, shared_fs_mutex& mutex,
                                            std::vector<entity> wanted, deadline within = {}) noexcept {
    return {.loop = &loop, .mutex = &mutex, .wanted = std::move(wanted), .within = within};
}
template <class Receiver>
[[nodiscard]] lock_operation<Receiver> connect(lock_sender from, Receiver to) noexcept {
    return {*from.loop, *from.mutex, std::move(from.wanted), from.within, std::move(to)};
}

}  // namespace sluice::fsmutex
