#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "sluice/base/result.hpp"
#include "sluice/fsmutex/limits.hpp"
#include "sluice/sync/small_mutex.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. Open file descriptions of one file, one for each outstanding request.
///
/// The kernel's locks belong to a description, and locks of one description do not exclude each
/// other. So two threads that share a mutex must not share a description; with one each, the kernel
/// excludes them like two processes. Thread safety: any thread. Blocks: for a mutex held for a few
/// instructions, and to open.
class descriptor_pool {
public:
    /// Opens the file of `original` again, with `flags` as of open(2). `original` outlives the
    /// pool.
    descriptor_pool(int original, int flags) noexcept : original_(original), flags_(flags) {}
    descriptor_pool(const descriptor_pool&) = delete;
    descriptor_pool& operator=(const descriptor_pool&) = delete;
    ~descriptor_pool();

    /// Returns a description that holds no lock. Errors: EMFILE, ENFILE, ENOMEM; ENOENT without
    /// /proc.
    [[nodiscard]] result<int> take() noexcept {
        // relaxed, and below: only a number; the kernel orders the uses of the descriptor.
        if (const int spare = spare_.exchange(none, std::memory_order_relaxed); spare != none) return spare;
        return acquire_slow_path();
    }
    /// Returns to the pool a description that take() returned and that no longer holds a lock.
    void release(int descriptor) noexcept {
        int expected = none;
        if (not spare_.compare_exchange_strong(expected, descriptor, std::memory_order_relaxed))
            release_slow_path(descriptor);
    }

private:
    static constexpr int none = -1;

    [[nodiscard]] result<int> acquire_slow_path() noexcept;
    void release_slow_path(int descriptor) noexcept;

    int original_;
    int flags_;
    std::atomic<int> spare_ = none;  // fast path for one request at a time: no mutex
    sync::basic_small_mutex<sync::real_atomics> mutex_;
    std::size_t idle_count_ = 0;
    std::array<int, limits::pooled_descriptions_max> idle_{};
};

}  // namespace sluice::fsmutex
