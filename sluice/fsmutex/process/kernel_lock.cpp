#include "sluice/fsmutex/process/kernel_lock.hpp"

#include <fcntl.h>

#include <algorithm>
#include <ctime>

#include "sluice/fsmutex/limits.hpp"

namespace sluice::fsmutex {
namespace kernel_lock {

int lock(int descriptor, range where, kind how) noexcept {
    struct flock wanted = described(where, type_of(how));
    return control(descriptor, F_OFD_SETLKW, wanted) ? 0 : errno;
}

result<bool> is_locked(int descriptor, range where, kind how) noexcept {
    struct flock asked = described(where, type_of(how));
    if (not control(descriptor, F_OFD_GETLK, asked)) return failure(error::last("query a lock", descriptor));
    return asked.l_type != F_UNLCK;
}

result<void> lock_for_opening(int descriptor, range where, const clock_source& clock,
                              random_source& random) noexcept {
    constexpr std::chrono::seconds within{10};
    const auto end = clock.steady_now() + within;
    for (std::uint64_t rounds = 0;;) {
        const int code = try_lock(descriptor, where, kind::exclusive);
        if (code == 0) return {};
        if (code != EAGAIN) return failure({code, "lock a mutex file", descriptor});
        if (clock.steady_now() >= end) return failure({ETIMEDOUT, "lock a mutex file", descriptor});
        backoff(rounds).sleep(clock, random, end);
    }
}

}  // namespace kernel_lock

std::chrono::nanoseconds backoff::next(const clock_source& clock, random_source& random,
                                       clock_source::steady_time end) noexcept {
    using std::chrono::nanoseconds;
    const auto doubled = limits::pause_min * (std::int64_t{1} << std::min<std::uint64_t>(rounds_, 16));
    const nanoseconds longest = std::min(doubled, longest_);
    ++rounds_;
    // Between half and all of it, so that two waiters that collided do not collide again.
    const nanoseconds pause =
        longest / 2 + nanoseconds(random.below(static_cast<std::uint64_t>(longest.count() / 2)));
    if (end == clock_source::steady_time::max()) return pause;
    return std::clamp<nanoseconds>(end - clock.steady_now(), nanoseconds(0), pause);
}

void backoff::sleep(const clock_source& clock, random_source& random,
                    clock_source::steady_time end) noexcept {
    const auto pause = next(clock, random, end).count();
    const timespec sleeping{.tv_sec = pause / 1'000'000'000, .tv_nsec = pause % 1'000'000'000};
    (void)::nanosleep(&sleeping, nullptr);  // a signal only makes us poll sooner
}

}  // namespace sluice::fsmutex
