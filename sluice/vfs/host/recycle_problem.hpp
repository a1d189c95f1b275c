#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

// Internal to the host volume.

namespace sluice::vfs {

/// The last failure of the recycle bin that is not in the log yet. Monitor: any thread.
class recycle_problem {
public:
    /// Replaces an earlier one. Allocates: yes.
    void set(std::string text) {
        const std::scoped_lock guard(mutex_);
        text_ = std::move(text);
        has_text_.store(true, std::memory_order_relaxed);  // the mutex orders the text
    }
    /// Returns it, and forgets it; empty: none. Each removal calls it, so it writes to memory that
    /// the loops share only if there is one.
    [[nodiscard]] std::string take() {
        if (not has_text_.load(std::memory_order_relaxed)) return {};
        const std::scoped_lock guard(mutex_);
        has_text_.store(false, std::memory_order_relaxed);
        return std::exchange(text_, {});
    }

private:
    std::mutex mutex_;
    std::string text_;
    std::atomic<bool> has_text_{false};
};

/// The state of the recycle bin of a volume. Thread safety: any thread.
struct recycle_state {
    recycle_problem problem;
    // The directory that was examined and is used as the bin; 0: none. relaxed throughout: the
    // number is all that is shared.
    std::atomic<std::uint64_t> inode{0};
    std::atomic<bool> lacks_ages{false};  // renames do not set change times
    std::atomic<bool> has_reported_that{false};
};

}  // namespace sluice::vfs
