#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

// The common part of the peers of the range lock. Each is written from the description in its
// paper, as fast as we could make it: nodes come from pools, so that none pays for malloc during
// the measurement.

namespace sluice::bench::range_locks {

/// The bytes from `begin` to `end`, exclusive: begin < end < 2^63.
struct extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    [[nodiscard]] constexpr bool overlaps(const extent& other) const noexcept {
        return begin < other.end and other.begin < end;
    }
};

enum class access : unsigned char { shared, exclusive };

/// The resource whose ranges are locked. A peer only uses the members that its structure needs.
struct resource {
    std::uint64_t bytes = 0;
    std::uint64_t segment_bytes = 1024;  // a power of two; segment words and bitmaps have
                                         // a word, a bit of each
    unsigned height_max = 16;            // of skip lists
};

/// A range lock as used by the benchmark and the test. `holder` is the holder's state of one held
/// range; it is not moved between lock() and unlock(). A lock without readers treats `shared` as
/// `exclusive`. `held_bytes` is the memory of one held range, including the holder; object_bytes()
/// that of the lock itself.
template <class Lock>
concept range_lock = std::constructible_from<Lock, const resource&> and
                     requires(Lock& lock, typename Lock::holder& held, const extent& where, access how) {
                         { Lock::has_readers } -> std::convertible_to<bool>;
                         { Lock::held_bytes } -> std::convertible_to<std::size_t>;
                         { lock.object_bytes() } -> std::same_as<std::size_t>;
                         { lock.lock(held, where, how) } -> std::same_as<void>;
                         { lock.try_lock(held, where, how) } -> std::same_as<bool>;
                         { lock.unlock(held) } -> std::same_as<void>;
                     };

}  // namespace sluice::bench::range_locks
