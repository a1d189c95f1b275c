#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/sync/byte_range.hpp"
#include "sluice/sync/skiplist/link.hpp"

// For the tests of exclusive range locks: their specification, in the simplest form.

namespace sluice::sync {

[[nodiscard]] inline byte_range bytes(std::uint64_t first, std::uint64_t last) noexcept {
    return byte_range::between({.first = first, .last = last});
}

/// Ensures that there is an entry point after every request; reconsiders the regions after every
/// second one.
struct maintenance_steps : skiplist::sound_steps {
    static constexpr std::uint32_t uses_per_note = 1;
    static constexpr std::uint32_t uses_per_post = 1;
    static constexpr unsigned requests_recorded = 2;
};

/// Returns a random range: between small numbers, so that many touch, or at the end of all bytes;
/// one byte, an empty range, or everything.
[[nodiscard]] inline byte_range random_range(random_source& random) {
    constexpr std::uint64_t last_byte = ~std::uint64_t{0};
    const std::uint64_t base = random.below(4) == 0 ? last_byte - 40 : 0;
    const std::uint64_t first = base + random.below(41);
    switch (random.below(12)) {
        case 0:
            return byte_range::none_at(first);
        case 1:
            return byte_range::whole();
        case 2:
            return byte_range::from(first);
        case 3:
            return bytes(first, first);
        default:
            return bytes(first, first + std::min(random.below(12), last_byte - first));
    }
}

/// Does the same with a lock and with a list of the held ranges, and returns the first difference,
/// or "". `Lock` has a try_lock(range), which returns a `Lock::guard` that converts to bool and can
/// unlock().
template <class Lock>
[[nodiscard]] std::string first_difference(Lock& lock, std::uint64_t seed, int operations,
                                           std::size_t held_max = 12) {
    seeded_random random(seed);
    std::vector<std::pair<byte_range, typename Lock::guard>> held;
    for (int i = 0; i != operations; ++i) {
        if (held.size() == held_max or (not held.empty() and random.below(3) == 0)) {
            const auto one = held.begin() + static_cast<std::ptrdiff_t>(random.below(held.size()));
            one->second.unlock();
            held.erase(one);
            continue;
        }
        const byte_range wanted = random_range(random);
        const bool is_free =
            std::ranges::none_of(held, [&](const auto& one) { return one.first.overlaps(wanted); });
        typename Lock::guard got = lock.try_lock(wanted);
        if (static_cast<bool>(got) != is_free)
            return std::to_string(i) + ": " + (is_free ? "refused" : "granted") + " from " +
                   std::to_string(wanted.first()) + " to " + std::to_string(wanted.last());
        if (got) held.emplace_back(wanted, std::move(got));
    }
    return "";
}

}  // namespace sluice::sync
