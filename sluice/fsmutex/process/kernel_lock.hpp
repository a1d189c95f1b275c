#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/result.hpp"
#include "sluice/fsmutex/limits.hpp"
#include "sluice/io/path/volume_status.hpp"

// Internal to fsmutex: byte-range locks of open file descriptions (fcntl F_OFD_*). The kernel
// releases them when the last descriptor of the description is closed, also by a crash.
namespace sluice::fsmutex::kernel_lock {

enum class kind : short { shared, exclusive };

struct range {
    std::uint64_t first = 0;
    std::uint64_t length = 1;  // 0: to the largest possible offset
};

/// Returns the range in the form of fcntl(2).
[[nodiscard]] inline struct flock described(range where, short type) noexcept {
    struct flock lock{};  // l_pid must be zero
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(where.first);
    lock.l_len = static_cast<off_t>(where.length);
    return lock;
}
[[nodiscard]] constexpr short type_of(kind how) noexcept {
    return how == kind::exclusive ? F_WRLCK : F_RDLCK;
}

/// Calls fcntl(2) for a lock, without the two wrapper functions of the C library: after a system
/// call each return is expensive (docs/benchmarks/fs_mutex.md).
[[nodiscard]] inline bool control(int descriptor, int command, struct flock& lock) noexcept {
    static_assert(sizeof(long) == 8 and sizeof(off_t) == 8, "other ABIs need another system call");
    return ::syscall(SYS_fcntl, descriptor, command, &lock) == 0;
}

/// Errors of the three: EAGAIN, another description holds the lock; EINTR (waiting only), nothing
/// was locked; ENOLCK, EBADF, EOPNOTSUPP, ESTALE and others of the file system. 0: locked.
[[nodiscard]] inline int try_lock(int descriptor, range where, kind how) noexcept {
    struct flock wanted = described(where, type_of(how));
    while (not control(descriptor, F_OFD_SETLK, wanted))
        if (errno != EINTR) return errno == EACCES ? EAGAIN : errno;  // POSIX allows either
    return 0;
}
[[nodiscard]] int lock(int descriptor, range where, kind how) noexcept;
/// Returns whether lock() returns when a lock is released. The kernel asks a server for locks that
/// other hosts hold, and the release may go unnoticed: NFS clients that missed the server's
/// notification, or have none (NFSv4.0), ask again after 30 s. There a waiter must poll.
[[nodiscard]] constexpr bool wakes_waiters(io::volume_reach reach) noexcept {
    return reach != io::volume_reach::other_hosts;
}
/// Returns whether a signal ends lock() at once: where this kernel alone decides. A server in user
/// space may keep it waiting for the reply.
[[nodiscard]] constexpr bool is_interruptible(io::volume_reach reach) noexcept {
    return reach == io::volume_reach::this_host;
}
/// Returns whether a lock of that kind would conflict with another description.
[[nodiscard]] result<bool> is_locked(int descriptor, range where, kind how) noexcept;
inline void unlock(int descriptor, range where) noexcept {
    struct flock released = described(where, F_UNLCK);
    while (not control(descriptor, F_OFD_SETLK, released) and errno == EINTR) {}
}

/// Waits for processes that are opening or closing a mutex file. That takes moments, unless one of
/// them was stopped in between. Errors: ETIMEDOUT after ten seconds; those of try_lock().
[[nodiscard]] result<void> lock_for_opening(int descriptor, range where, const clock_source& clock,
                                            random_source& random) noexcept;

}  // namespace sluice::fsmutex::kernel_lock

namespace sluice::fsmutex {

/// Randomised pauses that double, for waiters that must poll.
class backoff {
public:
    explicit backoff(std::uint64_t& rounds, std::chrono::nanoseconds longest = limits::pause_max) noexcept
        : rounds_(rounds), longest_(longest) {}

    /// Returns the next pause: at most until `end`, and at most the longest pause.
    [[nodiscard]] std::chrono::nanoseconds next(const clock_source& clock, random_source& random,
                                                clock_source::steady_time end) noexcept;
    void sleep(const clock_source& clock, random_source& random, clock_source::steady_time end) noexcept;

private:
    std::uint64_t& rounds_;
    std::chrono::nanoseconds longest_;
};

}  // namespace sluice::fsmutex
