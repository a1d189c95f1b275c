#pragma once

namespace sluice::fsmutex {

/// Internal to fsmutex: notifies the CPU `times` times that this is a waiting loop. Takes about
/// twenty nanoseconds each time.
inline void cpu_relax(unsigned times = 1) noexcept {
    for (; times != 0; --times) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

}  // namespace sluice::fsmutex
