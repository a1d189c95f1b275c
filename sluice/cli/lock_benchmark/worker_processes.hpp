#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace sluice::lock_benchmark {

/// A lock to measure, as one process uses it.
class locker {
public:
    locker() = default;
    locker(const locker&) = delete;
    locker& operator=(const locker&) = delete;
    virtual ~locker() = default;
    virtual void lock_and_unlock() = 0;
};

inline constexpr unsigned processes_max = 64;

/// Processes that each create a locker, wait for the start, and lock and unlock until the end.
/// Errors: ends the program if the system has no memory or no process for it. Thread safety: one
/// thread.
class worker_processes {
public:
    /// Calls `make` in each process, with its number. Blocks: until all lockers exist.
    worker_processes(unsigned processes, const std::function<std::unique_ptr<locker>(unsigned)>& make);
    worker_processes(const worker_processes&) = delete;
    worker_processes& operator=(const worker_processes&) = delete;
    ~worker_processes();

    /// Returns the number of operations of all processes, at least one. Call it once. Blocks: for
    /// that long.
    std::uint64_t run_for(std::chrono::milliseconds duration);
    /// Waits until the processes have closed all they opened, and have ended.
    void stop();

    // After stop():
    [[nodiscard]] double cpu_ns_per_operation() const;
    /// Returns the operations of the slowest process divided by those of the fastest.
    [[nodiscard]] double slowest_to_fastest() const;

private:
    struct shared_state;
    [[noreturn]] void work(unsigned process, const std::function<std::unique_ptr<locker>(unsigned)>& make);

    shared_state* shared_state_;
    std::vector<pid_t> workers_;
    unsigned processes_;
};

}  // namespace sluice::lock_benchmark
