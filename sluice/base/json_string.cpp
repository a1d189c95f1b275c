#include "sluice/base/json_string.hpp"

#include "sluice/base/case_fold.hpp"

namespace sluice {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

void append_ascii(std::string& into, char c) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' or c == '\\') {
        into += '\\';
        into += c;
    } else if (byte < 0x20 or byte == 0x7f) {
        into += "\\u00";
        into += digits[byte >> 4];
        into += digits[byte & 0xf];
    } else {
        into += c;
    }
}

// character_at takes a surrogate for a character: host names may have them, JSON may not.
[[nodiscard]] bool is_unicode(char32_t point) noexcept {
    return point < 0xd800 or (point > 0xdfff and point <= 0x10'ffff);
}

}  // namespace

void append_json_string(std::string& into, std::string_view text) {
    into += '"';
    for (std::size_t at = 0; at < text.size();) {
        const name_character next = character_at(text, at);
        if (next.point < 0x80)
            append_ascii(into, text[at]);
        else if (is_unicode(next.point))
            into += text.substr(at, next.length);
        else
            for (std::size_t byte = 0; byte != next.length; ++byte)
                into += replacement;
        at += next.length;
    }
    into += '"';
}

std::string json_string(std::string_view text) {
    std::string made;
    append_json_string(made, text);
    return made;
}

}  // namespace sluice
