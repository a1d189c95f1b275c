#include "sluice/sync/atomics.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <limits>

namespace sluice::sync {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "a futex is a word of memory");

void real_atomics::wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, time_point until) noexcept {
    timespec end{};
    const bool ends = until != time_point::max();
    if (ends) {
        // CLOCK_MONOTONIC, as FUTEX_WAIT_BITSET requires.
        const auto since_boot = until.time_since_epoch();
        const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
        end.tv_sec = static_cast<std::time_t>(seconds.count());
        end.tv_nsec = static_cast<long>(std::chrono::nanoseconds(since_boot - seconds).count());
    }
    (void)syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, ends ? &end : nullptr, nullptr,
                  FUTEX_BITSET_MATCH_ANY);
}

void real_atomics::wake_one(std::atomic<std::uint32_t>& word) noexcept {
    (void)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void real_atomics::wake_all(std::atomic<std::uint32_t>& word) noexcept {
    (void)syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, std::numeric_limits<int>::max(), nullptr, nullptr, 0);
}

namespace {

// Notifies the CPU that this is a waiting loop.
void relax() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

}  // namespace

void real_atomics::back_off(unsigned round) noexcept {
    constexpr unsigned relaxed = 32;
    static_assert(relaxed < spins_max);
    if (round < relaxed) return relax();
    if (round < spins_max) {
        (void)sched_yield();
        return;
    }
    constexpr unsigned doublings_max = 5;
    constexpr long nanoseconds_first = 20'000;
    const unsigned doublings = std::min(round - spins_max, doublings_max);
    const timespec moment{.tv_sec = 0, .tv_nsec = nanoseconds_first << doublings};
    (void)nanosleep(&moment, nullptr);
}

}  // namespace sluice::sync
