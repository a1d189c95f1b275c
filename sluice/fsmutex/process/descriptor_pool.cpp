#include "sluice/fsmutex/process/descriptor_pool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace sluice::fsmutex {

descriptor_pool::~descriptor_pool() {
    if (const int spare = spare_.load(std::memory_order_relaxed); spare != none) ::close(spare);
    for (std::size_t i = 0; i != idle_count_; ++i)
        ::close(idle_[i]);
}

result<int> descriptor_pool::acquire_slow_path() noexcept {
    {
        const std::lock_guard holding(mutex_);
        if (idle_count_ != 0) return idle_[--idle_count_];
    }
    // By its descriptor: its name may now lead to another file.
    std::array<char, 40> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", original_);
    for (;;) {
        const int opened = ::open(path.data(), flags_ | O_CLOEXEC);
        if (opened >= 0) return opened;
        if (errno != EINTR) return failure(error::last("reopen the lock file", original_));
    }
}

void descriptor_pool::release_slow_path(int descriptor) noexcept {
    {
        const std::lock_guard holding(mutex_);
        if (idle_count_ != idle_.size()) {
            idle_[idle_count_++] = descriptor;
            return;
        }
    }
    ::close(descriptor);
}

}  // namespace sluice::fsmutex
