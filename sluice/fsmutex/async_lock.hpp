#pragma once

#include <optional>
#include <vector>

#include "sluice/fsmutex/kernel_lock.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/awaitable.hpp"
#include "sluice/io/task.hpp"

// Locking without a thread that waits. A request keeps its place in the order like any other. In a mapped
// mutex the kernel wakes the multiplexer for it, where that is io_uring on Linux 6.7 or newer; otherwise it
// is polled by timers, after pauses from 50 us, doubled up to 5 ms: the loop is held up for a few system
// calls each time.

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
    /// For what to wait before polling again.
    [[nodiscard]] io::word_wait next_wait() noexcept;
    /// To be called afterwards.
    void waited() noexcept;
    /// The guard, once poll() has said true.
    [[nodiscard]] fs_mutex_guard take() noexcept { return std::move(held_); }

private:
    lock_attempt(shared_fs_mutex& mutex, entity_set wanted, const ticket& place, bool is_granted,
                 deadline within) noexcept;

    shared_fs_mutex* mutex_;
    entity_set wanted_;
    fs_mutex_guard held_;
    bool is_granted_;
    clock_source::steady_time end_;
    std::uint64_t pauses_ = 0;
    std::chrono::nanoseconds deaths_after_{};
    clock_source::steady_time looked_;
};

/// `co_await co_lock(loop, mutex, {entity(1), entity(2)}, 10s)` gives the guard. The mutex outlives the task.
/// Errors: as lock; ECANCELED. Suspends: until granted, cancelled, or the deadline passes. Allocates: the
/// frame; as lock.
[[nodiscard]] io::task<result<fs_mutex_guard>> co_lock(io::io_multiplexer& loop, shared_fs_mutex& mutex,
                                                       std::vector<entity> wanted, deadline within = {});

/// The state of a lock asked for with async_lock() and connect(). Its receiver is told
/// set_value(result<guard>), and then set_done(), after which this may be destroyed. Stays where it is from
/// start() to done.
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

private:
    // What wakes us between two polls.
    struct alarm {
        lock_operation* self;
        void set_value(const result<void>& outcome) noexcept {
            self->was_cancelled_ = not outcome and outcome.error() == std::errc::operation_canceled;
            self->attempt_->waited();
        }
        void set_done() noexcept { self->look(); }
    };
    using sleep_connection = decltype(io::connect(
        io::async_wait_word(std::declval<io::io_multiplexer&>(), io::word_wait()), std::declval<alarm>()));

    void look() noexcept {
        if (was_cancelled_) {
            attempt_.reset();
            return finish(failure({ECANCELED, "lock entities"}));
        }
        const auto granted = attempt_->poll();
        if (not granted) return finish(failure(granted.error()));
        if (*granted) return finish(attempt_->take());
        sleep_.emplace(io::connect(io::async_wait_word(loop_, attempt_->next_wait()), alarm{this}));
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
