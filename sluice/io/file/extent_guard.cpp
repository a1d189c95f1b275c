#include "sluice/io/file/extent_guard.hpp"

#include <fcntl.h>

#include <algorithm>
#include <ctime>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/limits.hpp"

namespace sluice::io {
namespace {

constexpr auto offset_max = static_cast<extent_type>(std::numeric_limits<std::int64_t>::max());

struct flock kernel_lock(extent_pair range, short type) noexcept {
    ENSURE(range.offset <= offset_max, "the kernel's offset would be negative");
    struct flock lock{};  // l_pid must be zero
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(range.offset);
    lock.l_len = range.length == extent_pair::to_the_end ? 0 : static_cast<off_t>(range.length);
    return lock;
}

// 0, or the errno value.
int lock_once(int descriptor, int command, struct flock lock) noexcept {
    // Interrupted without a deadline: wait on. Nothing was locked.
    while (::fcntl(descriptor, command, &lock) != 0)
        if (errno != EINTR) return errno;
    return 0;
}

int lock_within(int descriptor, const struct flock& lock, deadline within) noexcept {
    ENSURE(not within.is_none(), "without a deadline the kernel waits");
    using clock = deadline::steady_clock;
    const auto end = within.steady_end(clock::now(), deadline::system_clock::now());
    std::chrono::nanoseconds pause = limits::lock_pause_min;
    for (;;) {
        const int code = lock_once(descriptor, F_OFD_SETLK, lock);
        if (code != EAGAIN and code != EACCES) return code;
        const auto now = clock::now();
        if (now >= end) return ETIMEDOUT;
        const std::chrono::nanoseconds sleep = std::min<std::chrono::nanoseconds>(pause, end - now);
        const timespec wait{.tv_sec = sleep.count() / 1'000'000'000,
                            .tv_nsec = sleep.count() % 1'000'000'000};
        (void)::nanosleep(&wait, nullptr);  // a signal only makes us look sooner
        pause = std::min(2 * pause, limits::lock_pause_max);
    }
}

}  // namespace

extent_guard& extent_guard::operator=(extent_guard&& other) noexcept {
    if (this != &other) {
        unlock();
        range_ = other.range_;
        kind_ = other.kind_;
        descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
}

void extent_guard::unlock() noexcept {
    if (not is_held()) return;
    (void)lock_once(std::exchange(descriptor_, -1), F_OFD_SETLK, kernel_lock(range_, F_UNLCK));
}

result<extent_guard> extent_guard::lock(int descriptor, extent_pair range, lock_kind kind,
                                        deadline within) noexcept {
    constexpr const char* operation = "lock a range";
    if (range.length == 0) return failure({EINVAL, operation, descriptor});
    const bool to_the_end = range.length == extent_pair::to_the_end;
    if (range.offset > offset_max or (not to_the_end and range.length > offset_max - range.offset))
        return failure({EOVERFLOW, operation, descriptor});

    const struct flock lock =
        kernel_lock(range, static_cast<short>(kind == lock_kind::exclusive ? F_WRLCK : F_RDLCK));
    const int code =
        within.is_none() ? lock_once(descriptor, F_OFD_SETLKW, lock) : lock_within(descriptor, lock, within);
    if (code != 0) return failure({code, operation, descriptor});
    return extent_guard(descriptor, range, kind);
}

}  // namespace sluice::io
