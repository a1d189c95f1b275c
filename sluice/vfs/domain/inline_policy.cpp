#include "sluice/vfs/domain/inline_policy.hpp"

namespace sluice::vfs {

void inline_policy::record_time(duration took) noexcept {
    const std::scoped_lock guard(mutex_);
    if (took > slow_call) ++slow_samples_;
    const bool looks_slow = slow_samples_ == slow_samples_max;
    if (looks_slow) {
        examined_ = sleeping_ = 0;
        is_examining_.store(true, std::memory_order_relaxed);  // orders no other access
    }
    if (looks_slow or ++samples_ == samples_max) samples_ = slow_samples_ = 0;
}

bool inline_policy::record_examined(duration took, bool has_slept) noexcept {
    const std::scoped_lock guard(mutex_);
    // The examination has just ended.
    if (not is_examining_.load(std::memory_order_relaxed)) return false;
    if (took > slow_call and has_slept) ++sleeping_;
    const bool is_blocked = sleeping_ == sleeping_calls_max;
    if (is_blocked or ++examined_ == examined_calls_max)
        is_examining_.store(false, std::memory_order_relaxed);
    return is_blocked;
}

void inline_policy::record_offloaded_at(time_point now) noexcept {
    const std::scoped_lock guard(mutex_);
    offloaded_at_ = now;
    prompt_calls_ = 0;
}

bool inline_policy::record_offloaded_call(duration took, time_point now) noexcept {
    const std::scoped_lock guard(mutex_);
    prompt_calls_ = took < prompt_call ? prompt_calls_ + 1 : 0;
    return prompt_calls_ >= prompt_calls_min and now - offloaded_at_ >= offloaded_at_least;
}

}  // namespace sluice::vfs
