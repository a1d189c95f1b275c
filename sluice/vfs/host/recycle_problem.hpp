#pragma once

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

}  // namespace sluice::vfs
