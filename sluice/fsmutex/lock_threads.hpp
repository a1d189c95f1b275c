#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

#include "sluice/fsmutex/kernel_lock.hpp"
#include "sluice/fsmutex/wake_up.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. Threads that wait for locks of the kernel, one each, for requests that have no thread
/// to wait in. Unlike io::call_threads a wait can be ended early.
///
/// The kernel has no timed, no pollable and no asynchronous wait for a byte-range lock: only a signal ends
/// one. pthread_cancel(3) sends it, by a signal that the C library keeps for itself, so a program's own
/// signals and their handlers stay as they are. All signals of the program are blocked in these threads.
///
/// Invariants:
///   1. A thread can be cancelled only inside the system call that waits; there it owns nothing.
///   2. Between begin() and end() only the thread uses the descriptor for waiting.
///   3. `idle_` holds those without a wait, at most limits::idle_lock_threads_max.
/// Thread safety: any thread; each wait is begun and ended by one at a time.
class lock_threads {
public:
    class wait;

    lock_threads() noexcept;
    lock_threads(const lock_threads&) = delete;
    lock_threads& operator=(const lock_threads&) = delete;
    /// All waits have been ended (ENSURE). Blocks: until the threads have ended.
    ~lock_threads();
    /// In a forked child, before the destructor: forgets the threads, which exist only in the parent. Takes
    /// no lock, because a thread of the parent may have held it. The memory of the threads is not freed.
    void leave_to_parent() noexcept;

    /// Waits for a lock of the description, and then calls `told->wake()`; also if that fails. Returns null
    /// if there is no thread for it: then nothing has begun. Allocates: a thread, if none is idle.
    [[nodiscard]] wait* begin(int descriptor, kernel_lock::range where, kernel_lock::kind how,
                              std::shared_ptr<wake_up> told) noexcept;
    /// Ends a wait. Returns 0 if the description has the lock; ECANCELED if the wait was ended early: then it
    /// may still have the lock; otherwise an error of kernel_lock::lock. Blocks: for a wait that is ended
    /// early, until its thread has ended, some ten microseconds.
    [[nodiscard]] int end(wait* one) noexcept;

private:
    [[nodiscard]] wait* idle_or_new() noexcept;

    std::mutex mutex_;  // guards what follows
    std::unique_ptr<wait> idle_;
    std::size_t idle_count_ = 0;
    std::size_t count_ = 0;  // of all threads
};

}  // namespace sluice::fsmutex
