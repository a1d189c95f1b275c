#include "sluice/fsmutex/queue/wake_up.hpp"

#include <cerrno>
#include <new>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::fsmutex {

std::shared_ptr<wake_up> wake_up::create() noexcept {
    try {
        return std::make_shared<wake_up>();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

bool wake_up::was_woken() noexcept {
    const std::scoped_lock guard(mutex_);
    return was_woken_;
}

void wake_up::wake() noexcept {
    bool completes = false;
    {
        const std::scoped_lock guard(mutex_);
        ENSURE(not was_woken_, "woken twice");
        was_woken_ = true;
        completes = std::exchange(is_waiting_, false);
    }
    if (completes) complete(0);
}

// If it was woken before, it still completes from the loop, so that waits that begin inside other
// operations' completions do not nest.
std::optional<int> wake_up::begin(bool) noexcept {
    bool completes = false;
    {
        const std::scoped_lock guard(mutex_);
        completes = was_woken_;
        is_waiting_ = not completes;
    }
    if (completes) complete(0);
    return std::nullopt;
}

void wake_up::end() noexcept {
    if (abandon()) complete(ECANCELED);
}

bool wake_up::abandon() noexcept {
    const std::scoped_lock guard(mutex_);
    return std::exchange(is_waiting_, false);
}

}  // namespace sluice::fsmutex
