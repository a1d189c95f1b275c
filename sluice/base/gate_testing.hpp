#pragma once

#include <atomic>

namespace sluice {

/// Blocks threads until it is opened. Thread safety: any thread.
class gate_for_testing {
public:
    /// Blocks: until open().
    void pass() {
        ++inside_;
        inside_.notify_all();
        is_shut_.wait(true);
    }
    /// Waits until that many threads have come.
    void await(int count) const {
        for (int there = inside_; there < count; there = inside_)
            inside_.wait(there);
    }
    void open() {
        is_shut_ = false;
        is_shut_.notify_all();
    }

private:
    std::atomic<bool> is_shut_{true};
    std::atomic<int> inside_{0};
};

}  // namespace sluice
