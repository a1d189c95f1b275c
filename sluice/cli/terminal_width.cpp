#include "sluice/cli/terminal_width.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace sluice::cli {
namespace {

struct code_range {
    char32_t first;
    char32_t last;
};

// Unicode 16: combining characters, and those without a width.
constexpr std::array combining{
    code_range{0x0300, 0x036F}, code_range{0x0483, 0x0489}, code_range{0x0591, 0x05BD},
    code_range{0x0610, 0x061A}, code_range{0x064B, 0x065F}, code_range{0x1AB0, 0x1AFF},
    code_range{0x1DC0, 0x1DFF}, code_range{0x200B, 0x200D}, code_range{0x20D0, 0x20FF},
    code_range{0xFE00, 0xFE0F}, code_range{0xFE20, 0xFE2F},
};
// East Asian Width W and F, and emoji.
constexpr std::array wide{
    code_range{0x1100, 0x115F},   code_range{0x2E80, 0x303E},   code_range{0x3041, 0xA4CF},
    code_range{0xA960, 0xA97F},   code_range{0xAC00, 0xD7A3},   code_range{0xF900, 0xFAFF},
    code_range{0xFE30, 0xFE6F},   code_range{0xFF00, 0xFF60},   code_range{0xFFE0, 0xFFE6},
    code_range{0x1F300, 0x1F64F}, code_range{0x1F680, 0x1F6FF}, code_range{0x1F900, 0x1FAFF},
    code_range{0x20000, 0x3FFFD},
};

template <std::size_t Count>
[[nodiscard]] bool contains(const std::array<code_range, Count>& ranges, char32_t code) noexcept {
    return std::ranges::any_of(ranges,
                               [&](const code_range& r) { return code >= r.first and code <= r.last; });
}

[[nodiscard]] std::size_t width_of(char32_t code) noexcept {
    if (contains(combining, code)) return 0;
    return contains(wide, code) ? 2 : 1;
}

// Consumes one character of valid UTF-8. A byte that is not UTF-8 counts as a character.
[[nodiscard]] char32_t take_character(std::string_view& text) noexcept {
    const auto lead = static_cast<std::uint8_t>(text.front());
    std::size_t length = 1;
    char32_t code = lead;
    if (lead >= 0xF0) {
        length = 4;
        code = lead & 0x07U;
    } else if (lead >= 0xE0) {
        length = 3;
        code = lead & 0x0FU;
    } else if (lead >= 0xC0) {
        length = 2;
        code = lead & 0x1FU;
    }
    length = std::min(length, text.size());
    for (std::size_t i = 1; i < length; ++i)
        code = (code << 6) | (static_cast<std::uint8_t>(text[i]) & 0x3FU);
    text.remove_prefix(length);
    return code;
}

}  // namespace

std::size_t terminal_width(std::string_view text) noexcept {
    std::size_t columns = 0;
    while (not text.empty())
        columns += width_of(take_character(text));
    return columns;
}

std::string fitted_end(std::string_view text, std::size_t columns) {
    constexpr std::string_view dots = "...";
    std::size_t excess = terminal_width(text);
    if (excess <= columns) return std::string(text);
    if (columns <= dots.size()) return {};
    while (excess + dots.size() > columns)
        excess -= width_of(take_character(text));
    return std::string(dots) + std::string(text);
}

}  // namespace sluice::cli
