#pragma once

#include <string_view>

namespace sluice::io {

/// Whether a name fits a pattern: `*` any run of characters, `?` one character (one code point where the name
/// is UTF-8), `[a-z]` and `[!a-z]` one byte of a set, `\` takes the next character literally. Everything else
/// stands for itself; a leading dot is nothing special. A `[` without its `]` stands for itself.
///
/// Our own because fnmatch follows the locale, and may allocate.
/// Errors: none. Allocates: nothing. Complexity: O(pattern * name), whatever the pattern.
[[nodiscard]] bool matches_glob(std::string_view pattern, std::string_view name) noexcept;

}  // namespace sluice::io
