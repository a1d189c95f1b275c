#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

// Internal to the volumes.

namespace sluice::vfs {

/// A hint whether the file system writes into memory without waiting. A plain call then costs a
/// tenth of posting 4 KiB to another thread, which io_uring does on ext4, and of the delay that
/// this causes for other callers. After a call that had to wait (too many dirty pages), the next
/// calls are posted.
/// Thread safety: any thread.
class buffered_write_hint {
public:
    using clock = std::chrono::steady_clock;

    [[nodiscard]] bool is_prompt(clock::time_point now) const noexcept {
        // relaxed: a hint, which does not order other accesses.
        return now.time_since_epoch().count() >= again_at_.load(std::memory_order_relaxed);
    }
    /// Records the duration of a plain call that wrote `bytes` bytes.
    void record(clock::time_point began, clock::time_point ended, std::size_t bytes) noexcept {
        const clock::duration expected = std::chrono::milliseconds(1 + (bytes >> 20U));
        if (ended - began > expected) not_before(ended + std::chrono::milliseconds(100));
    }
    void never() noexcept { not_before(clock::time_point::max()); }

private:
    void not_before(clock::time_point when) noexcept {
        again_at_.store(when.time_since_epoch().count(), std::memory_order_relaxed);
    }
    std::atomic<clock::rep> again_at_{0};
};

}  // namespace sluice::vfs
