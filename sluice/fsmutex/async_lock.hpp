#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sluice/fsmutex/process/kernel_lock.hpp"
#include "sluice/fsmutex/queue/wake_up.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/task.hpp"

// Locking without blocking the calling thread. A request has a position in the order like any
// other. The loop sleeps until the request is granted:
//
//   - memory_map: io_uring waits for the futex word (Linux 6.7 or newer).
//   - atomic_append, byte_ranges, lock_files, on a volume of this host: a thread of the mutex
//     waits for the kernel's lock and wakes the loop. A mutex has at most
//     limits::lock_threads_max such threads.
//   - Otherwise timers poll, after pauses from 50 µs, doubled up to 16 ms. Each poll occupies the
//     loop for a few system calls.
//
// A request ends early, by its deadline or by cancellation, without waiting for the holder.
// Afterwards none of its slots, locks or waiting threads exists.

namespace sluice::fsmutex {

using io::connect;

/// A request that is polled instead of waited for. Thread safety: one thread at a time.
class lock_attempt {
public:
    /// Queues the request. Errors, Allocates: as shared_fs_mutex::lock; never ETIMEDOUT.
    [[nodiscard]] static result<lock_attempt> begin(shared_fs_mutex& mutex, std::span<const entity> wanted,
                                                    deadline within) noexcept;

    /// Returns whether the request is granted. Errors: ETIMEDOUT once the deadline has passed; as
    /// lock. An error ends the attempt.
    [[nodiscard]] result<bool> poll() noexcept;
    /// Makes `op` the operation to wait for before the next poll. end_wait() follows, once the
    /// operation is done or abandoned.
    void begin_wait(io::io_multiplexer& loop, io::detail::operation_record& op) noexcept;
    /// Ends a wait. Errors: ECANCELED; other errors have the same meaning as success: poll again.
    [[nodiscard]] result<void> end_wait(const io::detail::operation_record& op) noexcept;
    /// Returns the guard, once poll() has returned true.
    [[nodiscard]] fs_mutex_guard take() noexcept { return std::move(held_); }

private:
    lock_attempt(shared_fs_mutex& mutex, entity_set wanted, const ticket& place, bool is_granted,
                 deadline within) noexcept;

    [[nodiscard]] std::chrono::nanoseconds time_left() const noexcept;
    [[nodiscard]] io::word_wait prepare_wake() noexcept;
    void check_for_deaths() noexcept;

    shared_fs_mutex* mutex_;
    entity_set wanted_;
    fs_mutex_guard held_;
    // While a thread of the mutex, or another request, may wake us.
    std::shared_ptr<wake_up> waker_;
    bool is_granted_;
    clock_source::steady_time end_;
    std::uint64_t pauses_ = 0;
    std::chrono::nanoseconds deaths_after_{};
    clock_source::steady_time looked_;
};

/// A sender that waits until it is worth polling an attempt again. The attempt outlives it. Errors:
/// ECANCELED; others, as for lock_attempt::end_wait().
class wake_sender {
public:
    using result_type = result<void>;

    wake_sender(io::io_multiplexer& loop, lock_attempt& waiting) noexcept
        : loop_(&loop), waiting_(&waiting) {}

    [[nodiscard]] io::io_multiplexer& multiplexer() const noexcept { return *loop_; }
    void configure(io::operation& configured) noexcept {
        waiting_->begin_wait(*loop_, io::detail::record_of(configured));
    }
    [[nodiscard]] result_type collect(const io::operation& completed) noexcept {
        return waiting_->end_wait(io::detail::record_of(completed));
    }

private:
    io::io_multiplexer* loop_;
    lock_attempt* waiting_;
};

/// Returns the guard: `co_await co_lock(loop, mutex, {entity(1), entity(2)}, 10s)`. The mutex
/// outlives the task. Errors: as lock; ECANCELED. Suspends: until granted, cancelled, or the
/// deadline passes. Blocks: to end a wait early, until its thread has ended.
/// Allocates: the frame; 64 bytes for each wait; as lock.
[[nodiscard]] io::task<result<fs_mutex_guard>> co_lock(io::io_multiplexer& loop, shared_fs_mutex& mutex,
                                                       std::vector<entity> wanted, deadline within = {});

namespace detail {

/// A request that polls its attempt when that is worthwhile.
///
/// Where several threads run the loop, the sleep between two polls may end on one of them while
/// another one ends or polls the request. `lock_` guards all members from begin() until the outcome
/// is known; it is recursive, because poll() may send the signals of the sleep.
class lock_wait final : public io::external_work {
public:
    lock_wait(io::io_multiplexer& loop, shared_fs_mutex& mutex, std::span<const entity> wanted,
              deadline within) noexcept
        : loop_(loop), mutex_(mutex), wanted_(wanted), within_(within) {}

    /// Moves the outcome out. `code` is the result of the operation; one that was cancelled before
    /// it began has no other outcome.
    [[nodiscard]] result<fs_mutex_guard> take_outcome(int code) noexcept {
        if (not outcome_) return failure({code, "lock entities"});
        return *std::move(outcome_);
    }

private:
    // The timer or word that wakes us between two polls.
    struct alarm {
        lock_wait* self;
        void set_value(const result<void>& woken) const noexcept;
        void set_done() const noexcept { self->recheck(); }
    };
    // Like wake_sender, with the lock.
    struct sleep_sender {
        using result_type = result<void>;

        lock_wait* self;
        [[nodiscard]] io::io_multiplexer& multiplexer() const noexcept { return self->loop_; }
        void configure(io::operation& configured) noexcept {
            self->attempt_->begin_wait(self->loop_, io::detail::record_of(configured));
        }
        [[nodiscard]] result_type collect(const io::operation& completed) noexcept;
    };
    using sleep_connection = io::io_operation_connection<sleep_sender, alarm>;

    [[nodiscard]] std::optional<int> begin(bool may_wait) noexcept override;
    void end() noexcept override;
    void poll() noexcept override;
    [[nodiscard]] bool abandon() noexcept override;
    [[nodiscard]] std::optional<int> look() noexcept;
    void recheck() noexcept;
    [[nodiscard]] int finish(result<fs_mutex_guard> outcome) noexcept;

    io::io_multiplexer& loop_;
    shared_fs_mutex& mutex_;
    std::span<const entity> wanted_;
    deadline within_;
    std::recursive_mutex lock_;
    std::optional<lock_attempt> attempt_;
    std::optional<sleep_connection> sleep_;
    std::optional<result<fs_mutex_guard>> outcome_;  // std::nullopt until it is known
    bool is_ended_ = false;
    bool is_complete_ = false;
    bool is_signalled_ = false;  // the sleep has sent its value, but not its done signal
};

}  // namespace detail

/// The io::sender that async_lock() returns. A value; refers to the loop and the mutex, which
/// outlive the operation.
class lock_sender {
public:
    using result_type = result<fs_mutex_guard>;

    lock_sender(io::io_multiplexer& loop, shared_fs_mutex& mutex, std::vector<entity> wanted,
                deadline within) noexcept
        : loop_(&loop), mutex_(&mutex), wanted_(std::move(wanted)), within_(within) {}

    [[nodiscard]] io::io_multiplexer& multiplexer() const noexcept { return *loop_; }
    void configure(io::operation& configured) noexcept {
        // The attempt has its own deadline, which decides how long a sleep may be.
        io::configure_external(configured, *loop_, waiting_.emplace(*loop_, *mutex_, wanted_, within_), {});
    }
    [[nodiscard]] result_type collect(const io::operation& completed) noexcept {
        return (*waiting_).take_outcome(io::code_of(completed));
    }

private:
    io::io_multiplexer* loop_;
    shared_fs_mutex* mutex_;
    std::vector<entity> wanted_;
    deadline within_;
    io::work_room<detail::lock_wait> waiting_;
};

/// Returns a sender of the lock: result<guard>. Usage: `connect(async_lock(loop, mutex,
/// {entity(1)}, 10s), receiver)`. Errors: as lock; ECANCELED. Blocks, Allocates: as co_lock. Thread
/// safety: the loop's thread; any, by io::atomic().
[[nodiscard]] inline lock_sender async_lock(io::io_multiplexer& loop, shared_fs_mutex& mutex,
                                            std::vector<entity> wanted, deadline within = {}) noexcept {
    return {loop, mutex, std::move(wanted), within};
}

}  // namespace sluice::fsmutex
