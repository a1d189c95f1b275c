#include "sluice/fsmutex/shared_fs_mutex.hpp"

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

seams seams::of_this_machine() noexcept {
    // Neither has any state: one of each is as good as many.
    static const system_clock_source clock;
    static system_random random;
    return {.clock = &clock, .random = &random};
}

// One entity, and several in order, need no copy: that is what most ask for.

result<fs_mutex_guard> shared_fs_mutex::lock(std::span<const entity> wanted, deadline within) noexcept {
    if (within.is_zero()) return try_lock(wanted);
    if (wanted.size() == 1 or is_in_order(wanted)) return lock_ordered(wanted, within);
    const auto entities = entity_set::of(wanted);
    if (not entities) return failure(entities.error());
    return lock_ordered(entities->view(), within);
}

result<fs_mutex_guard> shared_fs_mutex::try_lock(std::span<const entity> wanted) noexcept {
    if (wanted.size() == 1 or is_in_order(wanted)) return try_lock_ordered(wanted);
    const auto entities = entity_set::of(wanted);
    if (not entities) return failure(entities.error());
    return try_lock_ordered(entities->view());
}

result<fs_mutex_guard> shared_fs_mutex::lock_ordered(std::span<const entity> wanted,
                                                     const deadline& within) noexcept {
    ticket mine;
    const auto how = within.is_none() ? patience::endless : patience::some;
    if (const auto entered = enter(wanted, mine, how); not entered) return failure(entered.error());
    guard held(*this, mine);  // leaves, should this end without a grant
    // Looked up only by those who wait, and not for ever: the rest need not know what time it is.
    steady_time end = steady_time::max();
    for (bool is_first = true;; is_first = false) {
        const auto granted = poll(wanted, held.ticket_);
        if (not granted) return failure(granted.error());
        if (*granted) return held;
        if (is_first and not within.is_none())
            end = within.steady_end(clock().steady_now(), clock().utc_now());
        if (end != steady_time::max() and clock().steady_now() >= end)
            return failure({ETIMEDOUT, "lock entities"});
        wait(wanted, held.ticket_, end);
    }
}

result<fs_mutex_guard> shared_fs_mutex::try_lock_ordered(std::span<const entity> wanted) noexcept {
    ticket mine;
    if (const auto entered = enter(wanted, mine, patience::none); not entered)
        return failure(entered.error());
    guard held(*this, mine);
    const auto granted = poll(wanted, held.ticket_);
    if (not granted) return failure(granted.error());
    if (not*granted) return failure({ETIMEDOUT, "lock entities"});
    return held;
}

}  // namespace sluice::fsmutex
