#pragma once

#include <mutex>

#include "sluice/base/thread_safety.hpp"

namespace sluice {

/// A std::mutex that the thread-safety analysis knows. Thread safety: any thread.
class SLUICE_CAPABILITY("mutex") mutex {
public:
    void lock() SLUICE_ACQUIRE() { of_.lock(); }
    [[nodiscard]] bool try_lock() SLUICE_TRY_ACQUIRE(true) { return of_.try_lock(); }
    void unlock() SLUICE_RELEASE() { of_.unlock(); }

private:
    std::mutex of_;
};

/// A std::lock_guard that the thread-safety analysis knows, for every annotated mutex.
template <class Mutex>
class SLUICE_SCOPED_CAPABILITY lock_guard {
public:
    explicit lock_guard(Mutex& held) SLUICE_ACQUIRE(held) : held_(held) { held_.lock(); }
    lock_guard(const lock_guard&) = delete;
    lock_guard& operator=(const lock_guard&) = delete;
    ~lock_guard() SLUICE_RELEASE() { held_.unlock(); }

private:
    Mutex& held_;
};

}  // namespace sluice
