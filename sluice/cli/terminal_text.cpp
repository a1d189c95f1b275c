#include "sluice/cli/terminal_text.hpp"

#include "sluice/base/terminal_character.hpp"

namespace sluice::cli {
namespace {

struct character {
    char32_t value = 0;  // not_utf8 for a byte that is not part of a character
    std::size_t bytes = 1;
};
constexpr char32_t not_utf8 = 0xffff'ffff;

// Returns the character at the beginning of `text`, which is not empty. Overlong forms and
// surrogates are not UTF-8.
[[nodiscard]] character first_of(std::string_view text) noexcept {
    const auto first = static_cast<unsigned char>(text.front());
    if (first < 0x80) return {.value = first};
    const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 or first > 0xf4 or text.size() < bytes) return {.value = not_utf8};
    char32_t value = first & (0xffU >> (bytes + 1));
    for (const char each : text.substr(1, bytes - 1)) {
        const auto next = static_cast<unsigned char>(each);
        if ((next & 0xc0U) != 0x80) return {.value = not_utf8};
        value = value << 6 | (next & 0x3fU);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_surrogate = value >= 0xd800 and value <= 0xdfff;
    if (value < least[bytes] or value > 0x10ffff or is_surrogate) return {.value = not_utf8};
    return {.value = value, .bytes = bytes};
}

}  // namespace

std::string terminal_text(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    while (not text.empty()) {
        const character next = first_of(text);
        if (next.value == not_utf8 or controls_terminal(next.value))
            shown += '?';
        else
            shown += text.substr(0, next.bytes);
        text.remove_prefix(next.bytes);
    }
    return shown;
}

}  // namespace sluice::cli
