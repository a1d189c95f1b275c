#pragma once

namespace sluice::fsmutex {

/// Internal to fsmutex: tells the processor so often that this is a loop which waits; some twenty nanoseconds
/// each.
inline void relax(unsigned times = 1) noexcept {
    for (; times != 0; --times) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
}

}  // namespace sluice::fsmutex
