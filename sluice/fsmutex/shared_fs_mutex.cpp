#include "sluice/fsmutex/shared_fs_mutex.hpp"

#include <new>

#include "sluice/base/ensure.hpp"

namespace sluice::fsmutex {

std::string_view name_of(algorithm which) noexcept {
    switch (which) {
        case algorithm::lock_files:
            return "lock_files";
        case algorithm::byte_ranges:
            return "byte_ranges";
        case algorithm::atomic_append:
            return "atomic_append";
        case algorithm::memory_map:
            return "memory_map";
    }
    return "";
}

dependencies dependencies::of_this_machine() noexcept {
    // Neither has any state, so one of each is enough.
    static const system_clock_source clock;
    static system_random random;
    return {.clock = &clock, .random = &random};
}

result<std::vector<int>> shared_fs_mutex::descriptors_of(const guard& held) const noexcept {
    ENSURE(held.mutex_ == this);
    try {
        std::vector<int> found;
        add_descriptors(held.ticket_, found);
        return found;
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "list the descriptors of a lock"});
    }
}

result<fs_mutex_guard> shared_fs_mutex::lock(std::span<const entity> wanted, deadline within) noexcept {
    if (not is_ours()) return refuse_after_fork();
    // One entity, and several in order, need no copy. Most requests are like that.
    if (wanted.size() != 1 and not is_in_order(wanted)) return lock_unordered(wanted, within);
    const auto how = within.is_none()   ? wait_policy::endless
                     : within.is_zero() ? wait_policy::none
                                        : wait_policy::some;
    result<guard> held;
    auto granted = enter(wanted, held->ticket_, how);
    if (granted) {
        held->mutex_ = this;  // leaves, if this ends without a grant
        if (not*granted) granted = wait_for_grant(wanted, held->ticket_, within);
    }
    if (not granted) held = failure(granted.error());
    return held;
}

result<fs_mutex_guard> shared_fs_mutex::lock_unordered(std::span<const entity> wanted,
                                                       const deadline& within) noexcept {
    const auto entities = entity_set::of(wanted);
    if (not entities) return failure(entities.error());
    return lock(entities->view(), within);
}

result<bool> shared_fs_mutex::wait_for_grant(std::span<const entity> wanted, ticket& mine,
                                             const deadline& within) noexcept {
    // A wait without a deadline does not need the time.
    steady_time end = steady_time::max();
    if (not within.is_none()) end = within.steady_end(clock().steady_now(), clock().utc_now());
    for (;;) {
        if (within.is_zero() or (end != steady_time::max() and clock().steady_now() >= end))
            return failure({ETIMEDOUT, "lock entities"});
        wait(wanted, mine, end);
        const auto granted = poll(wanted, mine);
        if (not granted or *granted) return granted;
    }
}

}  // namespace sluice::fsmutex
