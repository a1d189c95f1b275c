#pragma once

#include <mutex>

#include "bench/range_lock_peers/peer.hpp"

namespace sluice::bench::range_locks {

/// One std::mutex for all ranges. A thread that holds one range cannot take another.
class one_mutex {
public:
    static constexpr bool has_readers = false;
    struct holder {};
    static constexpr std::size_t held_bytes = 0;

    explicit one_mutex(const resource&) noexcept {}

    [[nodiscard]] std::size_t object_bytes() const noexcept { return sizeof(*this); }

    void lock(holder&, const extent&, access) { mutex_.lock(); }
    [[nodiscard]] bool try_lock(holder&, const extent&, access) { return mutex_.try_lock(); }
    void unlock(holder&) { mutex_.unlock(); }

private:
    std::mutex mutex_;
};

}  // namespace sluice::bench::range_locks
