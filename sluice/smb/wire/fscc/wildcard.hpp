#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::smb::wire {

/// The longest name of one file, in characters. A component is at most 255 UTF-16 units to the protocol.
inline constexpr std::size_t name_characters_max = 255;

enum class name_case : bool { ignored, significant };

/// Whether `name` matches a search pattern, [MS-FSA] 2.1.4.4: `*` any characters, `?` one character, and the
/// forms into which DOS programs' patterns are translated: `<` any characters, yet never the last dot of the
/// name; `>` one character, or none before a dot and at the end; `"` a dot, or nothing at the end. Both are
/// UTF-8 (see character_at), `?` and `>` count code points. A name longer than name_characters_max matches
/// nothing. Complexity: O(characters of the name · characters of the pattern), whatever stars there are.
/// Allocates: nothing.
[[nodiscard]] bool wildcard_matches(std::string_view pattern, std::string_view name,
                                    name_case letters = name_case::ignored) noexcept;
/// The same in UTF-16, where a surrogate pair is one character.
[[nodiscard]] bool wildcard_matches(std::u16string_view pattern, std::u16string_view name,
                                    name_case letters = name_case::ignored) noexcept;

/// Whether a pattern may match more than one name, or a part of a path may not be one. Complexity: O(length).
[[nodiscard]] bool has_wildcard(std::string_view pattern) noexcept;

}  // namespace sluice::smb::wire
