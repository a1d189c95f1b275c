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

// Internal to fsmutex: byte-range locks of open file descriptions (fcntl F_OFD_*), which the kernel gives
// back when the last descriptor of the description is closed, by a crash, too.
namespace sluice::fsmutex::kernel_lock {

enum class kind : short { shared, exclusive };

struct range {
    std::uint64_t first = 0;
    std::uint64_t length = 1;  // 0: to the largest offset there is
};

/// As fcntl(2) wants it.
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

/// fcntl(2) of a lock, without the two functions the C library has around it: behind a system call each
/// return is dear (docs/benchmarks/fs_mutex.md).
[[nodiscard]] inline bool control(int descriptor, int command, struct flock& lock) noexcept {
    static_assert(sizeof(long) == 8 and sizeof(off_t) == 8, "elsewhere it is another call");
    return ::syscall(SYS_fcntl, descriptor, command, &lock) == 0;
}

/// Errors of the three: EAGAIN, held by another description; EINTR (waiting only), nothing was locked;
/// ENOLCK, EBADF, EOPNOTSUPP, ESTALE and others of the file system. 0: locked.
[[nodiscard]] inline int try_lock(int descriptor, range where, kind how) noexcept {
    struct flock wanted = described(where, type_of(how));
    while (not control(descriptor, F_OFD_SETLK, wanted))
        if (errno != EINTR) return errno == EACCES ? EAGAIN : errno;  // POSIX allows either
    return 0;
}
[[nodiscard]] int lock(int descriptor, range where, kind how) noexcept;
/// Whether lock() comes back when a lock is free. What other hosts hold the kernel has to ask a server for,
/// and it may not learn that it is free: clients of NFS that missed the server's notice, or have none
/// (NFSv4.0), ask again after 30 s. There who waits has to look.
[[nodiscard]] constexpr bool wakes_waiters(io::volume_reach reach) noexcept {
    return reach != io::volume_reach::other_hosts;
}
/// Whether a signal ends lock() at once: where this kernel alone decides. A server in user space may let it
/// wait for its answer.
[[nodiscard]] constexpr bool is_interruptible(io::volume_reach reach) noexcept {
    return reach == io::volume_reach::this_host;
}
/// Whether a lock of that kind would be in the way of another description.
[[nodiscard]] result<bool> is_locked(int descriptor, range where, kind how) noexcept;
inline void unlock(int descriptor, range where) noexcept {
    struct flock released = described(where, F_UNLCK);
    while (not control(descriptor, F_OFD_SETLK, released) and errno == EINTR) {}
}

/// Waits for those who are opening or closing a mutex file: moments, unless one of them was stopped in the
/// middle. Errors: ETIMEDOUT after ten seconds; those of try_lock().
[[nodiscard]] result<void> lock_for_opening(int descriptor, range where, const clock_source& clock,
                                            random_source& random) noexcept;

}  // namespace sluice::fsmutex::kernel_lock

namespace sluice::fsmutex {

/// Pauses that double, with chance in them, for those whom nobody wakes.
class backoff {
public:
    explicit backoff(std::uint64_t& rounds, std::chrono::nanoseconds longest = limits::pause_max) noexcept
        : rounds_(rounds), longest_(longest) {}

    /// How long to sleep now: at most until `end`, and never longer than the longest.
    [[nodiscard]] std::chrono::nanoseconds next(const clock_source& clock, random_source& random,
                                                clock_source::steady_time end) noexcept;
    void sleep(const clock_source& clock, random_source& random, clock_source::steady_time end) noexcept;

private:
    std::uint64_t& rounds_;
    std::chrono::nanoseconds longest_;
};

}  // namespace sluice::fsmutex
