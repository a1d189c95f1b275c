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
    }
    /// Returns it, and forgets it; empty: none.
    [[nodiscard]] std::string take() {
        const std::scoped_lock guard(mutex_);
        return std::exchange(text_, {});
    }

private:
    std::mutex mutex_;
    std::string text_;
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
