#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// When two names are the same to a client that ignores case: by the simple upper case of each character, as
// the tables of Windows file systems do it, for the Basic Multilingual Plane only. No normalisation, no
// locale.

namespace sluice {

/// The simple upper case of one code unit; surrogates and whatever has none stay as they are. Nothing outside
/// ASCII becomes ASCII. Complexity: O(log r) in the r runs of the table, O(1) for ASCII.
[[nodiscard]] char16_t upcase(char16_t unit) noexcept;

/// The same for a code point; those above U+FFFF stay.
[[nodiscard]] char32_t upcase(char32_t point) noexcept;

/// One character of a name and how much of the name it took.
struct name_character {
    char32_t point = 0;
    std::size_t length = 0;
};

/// The character at `position`, which lies inside. UTF-8 as host names use it: three-byte surrogates (WTF-8)
/// pass, and a byte that belongs to no character is one by itself, a point above U+10FFFF that equals only
/// the same byte.
[[nodiscard]] name_character character_at(std::string_view name, std::size_t position) noexcept;
/// The same of UTF-16; a surrogate without its partner is a character by itself.
[[nodiscard]] name_character character_at(std::u16string_view name, std::size_t position) noexcept;

/// Whether two names are the same but for case. Complexity: O(length of the shorter).
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;
[[nodiscard]] bool equal_ignoring_case(std::u16string_view a, std::u16string_view b) noexcept;

/// The key of a name in an index that ignores case: fold(a) == fold(b) exactly if equal_ignoring_case(a, b).
/// Bytes that are no UTF-8 are kept. Allocates: the string, which may be longer than the name.
[[nodiscard]] std::string fold(std::string_view utf8);
/// The same, in the place of what `folded` held. Allocates: only what its capacity lacks.
void fold_into(std::string& folded, std::string_view utf8);

/// A number that is the same for names that are equal_ignoring_case(). For tables in memory only: it may be
/// another in the next version, and who wants many names of one number finds them.
/// Allocates: for names that are not ASCII. Complexity: linear, eight bytes at a time.
[[nodiscard]] std::uint32_t hash_ignoring_case(std::string_view utf8);

}  // namespace sluice
