#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace sluice {

/// An unsigned integer as stored on the wire or on disk: bytes in a fixed order, alignment 1, so
/// that a struct of such fields has the layout of the specification's table and can be copied out
/// of any buffer.
///
/// Only `value()` converts to an integer, and only `le32(n)` from one. There is no implicit
/// conversion and no comparison with integers, because both would compile silently when the byte
/// order is forgotten. Two fields of one type compare for equality of their bytes. Zero by default.
/// Thread safety: a value.
template <class Integer, std::endian Order>
class wire_integer {
public:
    static_assert(std::is_unsigned_v<Integer>);
    using value_type = Integer;

    constexpr wire_integer() noexcept = default;
    constexpr explicit wire_integer(Integer value) noexcept : bytes_(std::bit_cast<bytes>(in_order(value))) {}

    [[nodiscard]] constexpr Integer value() const noexcept {
        return in_order(std::bit_cast<Integer>(bytes_));
    }

    [[nodiscard]] friend constexpr bool operator==(const wire_integer&,
                                                   const wire_integer&) noexcept = default;

private:
    using bytes = std::array<unsigned char, sizeof(Integer)>;

    static constexpr Integer in_order(Integer value) noexcept {
        return Order == std::endian::native ? value : std::byteswap(value);
    }

    bytes bytes_{};
};

using le8 = wire_integer<std::uint8_t, std::endian::little>;
using le16 = wire_integer<std::uint16_t, std::endian::little>;
using le32 = wire_integer<std::uint32_t, std::endian::little>;
using le64 = wire_integer<std::uint64_t, std::endian::little>;
using be16 = wire_integer<std::uint16_t, std::endian::big>;
using be32 = wire_integer<std::uint32_t, std::endian::big>;
using be64 = wire_integer<std::uint64_t, std::endian::big>;

static_assert(sizeof(le8) == 1 and sizeof(le16) == 2 and sizeof(le32) == 4 and sizeof(le64) == 8);
static_assert(alignof(le64) == 1 and alignof(be64) == 1);
static_assert(std::is_trivially_copyable_v<le64> and std::is_standard_layout_v<le64>);

}  // namespace sluice
