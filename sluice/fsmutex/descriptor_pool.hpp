#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "sluice/base/result.hpp"
#include "sluice/fsmutex/limits.hpp"
#include "sluice/sync/latch.hpp"

namespace sluice::fsmutex {

/// Internal to fsmutex. Open file descriptions of one file, one for each request outstanding.
///
/// The kernel's locks belong to a description: those of one do not exclude each other. So two threads that
/// share a mutex must not share a description, and with one each the kernel excludes them like two processes.
/// Thread safety: any thread. Blocks: for a latch held for a few instructions, and to open.
class descriptor_pool {
public:
    /// Opens what `original` has open anew, with `flags` as of open(2). `original` outlives the pool.
    descriptor_pool(int original, int flags) noexcept : original_(original), flags_(flags) {}
    descriptor_pool(const descriptor_pool&) = delete;
    descriptor_pool& operator=(const descriptor_pool&) = delete;
    ~descriptor_pool();

    /// A description that holds no lock. Errors: EMFILE, ENFILE, ENOMEM; ENOENT without /proc.
    [[nodiscard]] result<int> take() noexcept;
    /// One that take() gave and that holds no lock any more.
    void give_back(int descriptor) noexcept;

private:
    static constexpr int none = -1;

    int original_;
    int flags_;
    std::atomic<int> spare_ = none;  // of those that come and go one at a time, without the latch
    sync::basic_latch<sync::real_atomics> latch_;
    std::size_t idle_count_ = 0;
    std::array<int, limits::pooled_descriptions_max> idle_{};
};

}  // namespace sluice::fsmutex
