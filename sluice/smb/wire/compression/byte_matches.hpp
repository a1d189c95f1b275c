#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Repeated bytes: how compressors find them, and how decompressors copy them. The callers have
// checked all positions and lengths.

namespace sluice::smb::wire {

/// The shortest repetition that the formats of [MS-XCA] can express.
inline constexpr std::size_t match_bytes_min = 3;

/// Returns the three or four bytes at `from` as a number that identifies them.
[[nodiscard]] inline std::uint32_t three_bytes(const std::byte* from) noexcept {
    std::uint16_t first = 0;
    std::memcpy(&first, from, sizeof first);
    return first | std::to_integer<std::uint32_t>(from[2]) << 16;
}
[[nodiscard]] inline std::uint32_t four_bytes(const std::byte* from) noexcept {
    std::uint32_t all = 0;
    std::memcpy(&all, from, sizeof all);
    return all;
}

/// Returns a hash of `bits` bits of a number from above.
[[nodiscard]] constexpr std::uint32_t hash_of(std::uint32_t number, unsigned bits) noexcept {
    return number * 0x9e37'79b1U >> (32 - bits);  // a multiplier near 2^32 over the golden ratio
}

/// Returns the number of equal bytes at `a` and `b`, at most `bytes_max`, which both have.
/// Complexity: linear in the result.
[[nodiscard]] inline std::size_t equal_bytes(const std::byte* a, const std::byte* b,
                                             std::size_t bytes_max) noexcept {
    std::size_t equal = 0;
    for (; bytes_max - equal >= sizeof(std::uint64_t); equal += sizeof(std::uint64_t)) {
        std::uint64_t from_a = 0;
        std::uint64_t from_b = 0;
        std::memcpy(&from_a, a + equal, sizeof from_a);
        std::memcpy(&from_b, b + equal, sizeof from_b);
        const std::uint64_t differing = from_a ^ from_b;
        if (differing == 0) continue;
        const int bits = std::endian::native == std::endian::little ? std::countr_zero(differing)
                                                                    : std::countl_zero(differing);
        return equal + static_cast<std::size_t>(bits) / 8;
    }
    while (equal != bytes_max and a[equal] == b[equal])
        ++equal;
    return equal;
}

/// A repetition: `length` bytes that are `distance` bytes further back as well. The two may
/// overlap, so that a short sequence is repeated.
struct byte_match {
    std::size_t distance = 0;  ///< at least 1
    std::size_t length = 0;
};

/// Writes the bytes of `what` to `to`, after which `room_bytes` may be written, at least
/// `what.length`. May write any of these. Complexity: linear in the length.
inline void copy_match(std::byte* to, std::size_t room_bytes, byte_match what) noexcept {
    constexpr std::size_t at_once = 16;
    const std::byte* const from = to - what.distance;
    if (what.length <= at_once and what.distance >= at_once and room_bytes >= at_once) {
        std::memcpy(to, from, at_once);  // a constant length needs no call
        return;
    }
    if (what.distance == 1) {
        std::memset(to, static_cast<int>(*from), what.length);
        return;
    }
    // Each round repeats everything from `from` on, so that the rounds double.
    for (std::size_t copied = 0; copied != what.length;) {
        const std::size_t part = std::min(what.distance + copied, what.length - copied);
        std::memcpy(to + copied, from, part);
        copied += part;
    }
}

}  // namespace sluice::smb::wire
