#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::smb::wire {

/// The longest name of a file, in characters. The protocol limits a component to 255 UTF-16 units.
inline constexpr std::size_t name_characters_max = 255;

enum class name_case : bool { ignored, significant };

/// Returns whether `name` matches a search pattern, [MS-FSA] 2.1.4.4: `*` matches any characters,
/// `?` one character. The others are translations of DOS patterns: `<` matches any characters up to
/// the last dot of the name, and that dot, but none after it; where no dot follows, any characters.
/// `>` matches one character, or none before a dot and at the end; `"` a dot, or nothing at the
/// end. The pattern `*.*` matches all names. Both strings are UTF-8 (see character_at); `?` and `>`
/// count code points. A name longer than name_characters_max matches nothing. Complexity:
/// O(characters of the name · characters of the pattern), for any number of stars. Allocates:
/// nothing.
[[nodiscard]] bool wildcard_matches(std::string_view pattern, std::string_view name,
                                    name_case letters = name_case::ignored) noexcept;
/// The same in UTF-16, where a surrogate pair is one character.
[[nodiscard]] bool wildcard_matches(std::u16string_view pattern, std::u16string_view name,
                                    name_case letters = name_case::ignored) noexcept;

/// Returns whether a pattern can match more than one name. A component of a path must not be such a
/// pattern. Complexity: O(length).
[[nodiscard]] bool has_wildcard(std::string_view pattern) noexcept;

}  // namespace sluice::smb::wire
