#pragma once

#include <atomic>
#include <thread>

namespace sluice::bench::range_locks {

/// Notifies the CPU that this is a waiting loop.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

/// The wait of the peers for each other: a moment of spinning, then yielding. In a kernel, where
/// some of them come from, a holder is not preempted and spinning alone is enough; here it may be.
class backoff {
public:
    void wait() noexcept {
        if (looked_ < spins_max) {
            ++looked_;
            relax();
        } else {
            std::this_thread::yield();
        }
    }

    static constexpr unsigned spins_max = 100;

private:
    unsigned looked_ = 0;
};

/// Test and test-and-set, for std::lock_guard.
class spin_lock {
public:
    void lock() noexcept {
        // acquire: pairs with the release of unlock().
        if (not is_held_.exchange(true, std::memory_order_acquire)) return;
        backoff pause;
        do {
            while (is_held_.load(std::memory_order_relaxed))
                pause.wait();
        } while (is_held_.exchange(true, std::memory_order_acquire));
    }
    void unlock() noexcept { is_held_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> is_held_{false};
};

}  // namespace sluice::bench::range_locks
