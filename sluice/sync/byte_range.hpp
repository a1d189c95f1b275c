#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "sluice/base/ensure.hpp"

namespace sluice::sync {

/// A range of the 2^64 bytes that 64-bit offsets can address: any of them, all of them, or an empty
/// range at an offset.
///
/// An empty range is between two bytes. It overlaps ranges that cover both of them, and no other
/// empty range ([MS-FSA] 2.1.4.10 has such locks). The one at offset 0 overlaps nothing.
///
/// Stored as the first and the last byte, so that the last of all bytes needs no number beyond 64
/// bits. In an empty range, `last` is the byte before `first`; the rule for an overlap is then the
/// same.
/// Thread safety: a value.
class byte_range {
public:
    struct extent {
        std::uint64_t offset = 0;
        std::uint64_t length = 0;
    };
    struct ends {
        std::uint64_t first = 0;
        std::uint64_t last = 0;  // inclusive
    };

    /// Returns the range, or std::nullopt if it would reach past the last byte, 2^64 - 1.
    [[nodiscard]] static constexpr std::optional<byte_range> of(extent wanted) noexcept {
        if (wanted.length == 0) return byte_range({wanted.offset, wanted.offset - 1}, true);
        if (wanted.offset > offset_max - (wanted.length - 1)) return std::nullopt;
        return byte_range({wanted.offset, wanted.offset + (wanted.length - 1)}, false);
    }
    /// Returns the range from one byte to another, both inclusive; `first` is not after `last`.
    [[nodiscard]] static constexpr byte_range between(ends wanted) noexcept {
        ENSURE(wanted.first <= wanted.last, "a range begins before it ends");
        return byte_range(wanted, false);
    }
    [[nodiscard]] static constexpr byte_range from(std::uint64_t first) noexcept {
        return byte_range({first, offset_max}, false);
    }
    [[nodiscard]] static constexpr byte_range whole() noexcept { return from(0); }
    [[nodiscard]] static constexpr byte_range none_at(std::uint64_t offset) noexcept {
        return byte_range({offset, offset - 1}, true);
    }

    [[nodiscard]] constexpr std::uint64_t first() const noexcept { return at_.first; }
    /// Returns the last byte; for an empty range, the byte before `first()`.
    [[nodiscard]] constexpr std::uint64_t last() const noexcept { return at_.last; }
    [[nodiscard]] constexpr bool is_empty() const noexcept { return is_empty_; }
    /// Returns whether the range cannot overlap any other.
    [[nodiscard]] constexpr bool is_nowhere() const noexcept { return is_empty_ and at_.first == 0; }

    [[nodiscard]] constexpr bool overlaps(const byte_range& other) const noexcept {
        return not is_nowhere() and not other.is_nowhere() and at_.first <= other.at_.last and
               other.at_.first <= at_.last;
    }
    /// Returns whether every byte of `other`, which is not empty, is a byte of this range.
    [[nodiscard]] constexpr bool covers(const byte_range& other) const noexcept {
        return not is_empty_ and not other.is_empty_ and at_.first <= other.at_.first and
               other.at_.last <= at_.last;
    }

    [[nodiscard]] friend constexpr bool operator==(const byte_range& a, const byte_range& b) noexcept {
        return a.at_.first == b.at_.first and a.at_.last == b.at_.last and a.is_empty_ == b.is_empty_;
    }

private:
    static constexpr std::uint64_t offset_max = std::numeric_limits<std::uint64_t>::max();

    constexpr byte_range(ends at, bool is_empty) noexcept : at_(at), is_empty_(is_empty) {}

    ends at_;
    bool is_empty_;
};

}  // namespace sluice::sync
