#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::cli {

/// Returns the number of columns that `text`, which terminal_text() returned, occupies on a
/// terminal: none for a combining character, two for a wide one. The result is an estimate for
/// emoji, whose width differs between terminals. Allocates: nothing.
[[nodiscard]] std::size_t terminal_width(std::string_view text) noexcept;

/// Returns `text` if it is at most `columns` wide, or else "..." and its end. Returns an empty text
/// if that has no room. Allocates: the string.
[[nodiscard]] std::string fitted_end(std::string_view text, std::size_t columns);

}  // namespace sluice::cli
