#pragma once

namespace sluice {

/// Returns whether a terminal may act on the character instead of showing it: controls
/// (C0, DEL, C1), line separators, and the characters that change the direction of the
/// text. Allocates: nothing.
[[nodiscard]] constexpr bool controls_terminal(char32_t point) noexcept {
    if (point < 0x20 or (point >= 0x7f and point <= 0x9f)) return true;
    const bool is_line_separator = point == 0x2028 or point == 0x2029;
    const bool changes_direction = point == 0x061c or point == 0x200e or point == 0x200f or
                                   (point >= 0x202a and point <= 0x202e) or
                                   (point >= 0x2066 and point <= 0x2069);
    return is_line_separator or changes_direction;
}

}  // namespace sluice
