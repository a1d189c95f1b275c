#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Equality of names for a client that ignores case: by the simple upper case of each character,
// like the tables of Windows file systems, for the Basic Multilingual Plane only. No normalisation,
// no locale.

namespace sluice {

/// Returns the simple upper case of one code unit. Surrogates and units without one are unchanged.
/// No result for a unit outside ASCII is in ASCII. Complexity: O(log r) in the r runs of the table,
/// O(1) for ASCII.
[[nodiscard]] char16_t upcase(char16_t unit) noexcept;

/// The same for a code point; those above U+FFFF are unchanged.
[[nodiscard]] char32_t upcase(char32_t point) noexcept;

/// One character of a name and its length in code units.
struct name_character {
    char32_t point = 0;
    std::size_t length = 0;
};

/// Returns the character at `position`, which is inside. UTF-8 as used in host names: three-byte
/// surrogates (WTF-8) are accepted. A byte that belongs to no character is a character by itself, a
/// point above U+10FFFF that equals only the same byte.
[[nodiscard]] name_character character_at(std::string_view name, std::size_t position) noexcept;
/// The same for UTF-16; a surrogate without its partner is a character by itself.
[[nodiscard]] name_character character_at(std::u16string_view name, std::size_t position) noexcept;

/// Returns whether two names differ at most in case. Complexity: O(length of the shorter).
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;
[[nodiscard]] bool equal_ignoring_case(std::u16string_view a, std::u16string_view b) noexcept;

/// Returns the key of a name in an index that ignores case: fold(a) == fold(b) if and only if
/// equal_ignoring_case(a, b). Bytes that are not UTF-8 are kept. Allocates: the string, which may
/// be longer than the name.
[[nodiscard]] std::string fold(std::string_view utf8);
/// The same, replacing the content of `folded`. Allocates: only if its capacity is too small.
void fold_into(std::string& folded, std::string_view utf8);

/// Returns a number that is the same for names that are equal_ignoring_case(). For tables in memory
/// only: it may differ in the next version, and an attacker can find many names with one number.
/// Allocates: for names that are not ASCII. Complexity: linear, eight bytes at a time.
[[nodiscard]] std::uint32_t hash_ignoring_case(std::string_view utf8);

}  // namespace sluice
