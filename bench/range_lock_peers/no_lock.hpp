#pragma once

#include "bench/range_lock_peers/peer.hpp"

namespace sluice::bench::range_locks {

/// No lock at all: the cost of the work without one.
class no_lock {
public:
    static constexpr bool has_readers = true;
    struct holder {};
    static constexpr std::size_t held_bytes = 0;

    explicit no_lock(const resource&) noexcept {}

    [[nodiscard]] std::size_t object_bytes() const noexcept { return 0; }

    void lock(holder&, const extent&, access) noexcept {}
    [[nodiscard]] bool try_lock(holder&, const extent&, access) noexcept { return true; }
    void unlock(holder&) noexcept {}
};

}  // namespace sluice::bench::range_locks
