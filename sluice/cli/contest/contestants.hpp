#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// Processes that lock, and what they lock with if not with ours.
namespace sluice::bench {

class locker {
public:
    virtual ~locker() = default;
    virtual void lock_and_unlock() = 0;
};

/// Processes that each make a locker, wait for the start, and lock and unlock until the end.
class crowd {
public:
    crowd(unsigned processes, const std::function<std::unique_ptr<locker>(unsigned)>& make);
    crowd(const crowd&) = delete;
    crowd& operator=(const crowd&) = delete;
    ~crowd();

    /// How often they did it, together.
    std::uint64_t run_for(std::chrono::milliseconds duration);
    /// Waits until they have ended, each having closed what it opened.
    void stop();
    [[nodiscard]] double cpu_ns_per_operation() const;
    [[nodiscard]] double slowest_to_fastest() const;

private:
    struct board;
    board* board_;
    std::vector<pid_t> workers_;
    std::uint64_t done_ = 0;
};

struct peer {
    const char* name;
    std::unique_ptr<locker> (*make)(const std::string& path, const std::vector<std::uint64_t>& numbers);
};

/// flock(2) and fcntl(2) locks of one file for each entity, or of a byte for each; lockf(3); exclusively
/// created files; and robust mutexes of pthreads in shared memory.
[[nodiscard]] const std::vector<peer>& fs_mutex_peers();

}  // namespace sluice::bench
