#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

#include "sluice/fsmutex/process/kernel_lock.hpp"
#include "sluice/fsmutex/queue/wake_up.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. Threads that wait for kernel locks, one each, for requests without a
/// thread. Unlike in io::call_threads, a wait can be ended early.
///
/// The kernel has no timed, pollable or asynchronous wait for a byte-range lock: only a signal ends
/// one. pthread_cancel(3) sends a signal that the C library reserves, so a program's own signals
/// and their handlers stay as they are. All signals of the program are blocked in these threads.
///
/// Invariants:
///   1. A thread can be cancelled only inside the system call that waits; there it owns nothing.
///   2. Between begin() and end() only the thread uses the descriptor for waiting.
///   3. `idle_` holds the threads without a wait, at most limits::idle_lock_threads_max.
/// Thread safety: any thread; one thread at a time begins or ends a given wait.
class lock_threads {
public:
    class wait;

    lock_threads() noexcept;
    lock_threads(const lock_threads&) = delete;
    lock_threads& operator=(const lock_threads&) = delete;
    /// Requires that all waits have been ended (ENSURE). Blocks: until the threads have ended.
    ~lock_threads();
    /// Forgets the threads, which exist only in the parent. Called in a forked child, before the
    /// destructor. Takes no lock, because a thread of the parent may have held it. Does not free
    /// the memory of the threads.
    void leave_to_parent() noexcept;

    /// Begins a wait for a lock of the description; its end calls `waker->wake()`, also if the wait
    /// fails. Returns null if there is no thread for it: then nothing has begun. Allocates: a
    /// thread, if none is idle.
    [[nodiscard]] wait* begin(int descriptor, kernel_lock::range where, kernel_lock::kind how,
                              std::shared_ptr<wake_up> waker) noexcept;
    /// Ends a wait. Returns 0 if the description has the lock; ECANCELED if the wait was ended
    /// early: then it may still have the lock; otherwise an error of kernel_lock::lock. Blocks: for
    /// a wait that is ended early, until its thread has ended, some ten microseconds.
    [[nodiscard]] int end(wait* one) noexcept;

private:
    [[nodiscard]] wait* idle_or_new() noexcept;

    std::mutex mutex_;  // guards the members below
    std::unique_ptr<wait> idle_;
    std::size_t idle_count_ = 0;
    std::size_t count_ = 0;  // of all threads
};

}  // namespace sluice::fsmutex
