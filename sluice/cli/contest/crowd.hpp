#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace sluice::contest {

/// Whatever one process locks with.
class locker {
public:
    locker() = default;
    locker(const locker&) = delete;
    locker& operator=(const locker&) = delete;
    virtual ~locker() = default;
    virtual void lock_and_unlock() = 0;
};

inline constexpr unsigned processes_max = 64;

/// Processes that each make a locker, wait for the start, and lock and unlock until the end. Errors: stops
/// the program if the system has no memory or no process for it. Thread safety: one thread.
class crowd {
public:
    /// `make` is called in each process, with its number. Blocks: until all have made their lockers.
    crowd(unsigned processes, const std::function<std::unique_ptr<locker>(unsigned)>& make);
    crowd(const crowd&) = delete;
    crowd& operator=(const crowd&) = delete;
    ~crowd();

    /// How often they did it, together; at least once. Once per crowd. Blocks: for that long.
    std::uint64_t run_for(std::chrono::milliseconds duration);
    /// Waits until they have ended, each having closed what it opened.
    void stop();

    // After stop():
    [[nodiscard]] double cpu_ns_per_operation() const;
    /// How often the one who came least did it, for each time of the one who came most.
    [[nodiscard]] double slowest_to_fastest() const;

private:
    struct board;
    [[noreturn]] void work(unsigned process, const std::function<std::unique_ptr<locker>(unsigned)>& make);

    board* board_;
    std::vector<pid_t> workers_;
    unsigned processes_;
};

}  // namespace sluice::contest
