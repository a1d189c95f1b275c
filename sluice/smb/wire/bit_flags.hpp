#pragma once

#include <type_traits>

// Scoped enums whose enumerators are bits. A set that was received keeps bits without an
// enumerator.

namespace sluice::smb::wire {

/// Specialised to true for an enum of bits. Such an enum has the operators below.
template <class Enum>
inline constexpr bool is_bit_flags = false;

template <class Enum>
concept bit_flags = std::is_enum_v<Enum> and is_bit_flags<Enum>;

template <bit_flags Enum>
[[nodiscard]] constexpr std::underlying_type_t<Enum> bits_of(Enum set) noexcept {
    return static_cast<std::underlying_type_t<Enum>>(set);
}

template <bit_flags Enum>
[[nodiscard]] constexpr Enum operator|(Enum a, Enum b) noexcept {
    return static_cast<Enum>(bits_of(a) | bits_of(b));
}
template <bit_flags Enum>
[[nodiscard]] constexpr Enum operator&(Enum a, Enum b) noexcept {
    return static_cast<Enum>(bits_of(a) & bits_of(b));
}
/// Returns the set without `bits`.
template <bit_flags Enum>
[[nodiscard]] constexpr Enum without(Enum set, Enum bits) noexcept {
    return static_cast<Enum>(bits_of(set) & static_cast<std::underlying_type_t<Enum>>(~bits_of(bits)));
}
template <bit_flags Enum>
constexpr Enum& operator|=(Enum& a, Enum b) noexcept {
    return a = a | b;
}
template <bit_flags Enum>
constexpr Enum& operator&=(Enum& a, Enum b) noexcept {
    return a = a & b;
}

/// Returns whether all of `bits` are in `set`.
template <bit_flags Enum>
[[nodiscard]] constexpr bool has(Enum set, Enum bits) noexcept {
    return (set & bits) == bits;
}
/// Returns whether some of `bits` are in `set`.
template <bit_flags Enum>
[[nodiscard]] constexpr bool has_any(Enum set, Enum bits) noexcept {
    return (set & bits) != Enum{};
}

}  // namespace sluice::smb::wire
