#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

// Internal to the volumes.

namespace sluice::vfs {

/// Whether the file system takes what is written at once, into memory: then a plain call costs a tenth of
/// what it costs to hand 4 KiB to another thread, which is what io_uring does on ext4, and with them all that
/// others wait for. A call that did wait (too much is dirty already) has the next ones handed over.
/// Thread safety: any thread.
class buffered_write_hint {
public:
    using clock = std::chrono::steady_clock;

    [[nodiscard]] bool is_prompt(clock::time_point now) const noexcept {
        // relaxed: a hint, which orders nothing.
        return now.time_since_epoch().count() >= again_at_.load(std::memory_order_relaxed);
    }
    /// What a plain call of so many bytes took.
    void note(clock::time_point began, clock::time_point ended, std::size_t bytes) noexcept {
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
