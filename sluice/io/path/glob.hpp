#pragma once

#include <string_view>

namespace sluice::io {

/// Returns whether a name matches a pattern: `*` any sequence of characters, `?` one character (one
/// code point where the name is UTF-8), `[a-z]` and `[!a-z]` one byte of a set, `\` matches the
/// next character literally. All other characters match themselves; a leading dot is not special. A
/// `[` without its `]` matches itself.
///
/// fnmatch is not used because it depends on the locale, and may allocate. Errors: none. Allocates:
/// nothing. Complexity: O(pattern * name) for every pattern.
[[nodiscard]] bool matches_glob(std::string_view pattern, std::string_view name) noexcept;

}  // namespace sluice::io
