#include "sluice/base/json_string.hpp"

#include "sluice/base/case_fold.hpp"
#include "sluice/base/terminal_character.hpp"

namespace sluice {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

// All characters that control a terminal are in the Basic Multilingual Plane.
void append_escaped(std::string& into, char32_t point) {
    constexpr std::string_view digits = "0123456789abcdef";
    into += "\\u";
    for (const unsigned shift : {12U, 8U, 4U, 0U})
        into += digits[(point >> shift) & 0xf];
}

void append_ascii(std::string& into, char c) {
    if (c == '"' or c == '\\') into += '\\';
    into += c;
}

// character_at accepts a surrogate as a character: host names may have them, JSON may not.
[[nodiscard]] bool is_unicode(char32_t point) noexcept {
    return point < 0xd800 or (point > 0xdfff and point <= 0x10'ffff);
}

}  // namespace

void append_json_string(std::string& into, std::string_view text) {
    into += '"';
    for (std::size_t at = 0; at < text.size();) {
        const name_character next = character_at(text, at);
        if (controls_terminal(next.point))
            append_escaped(into, next.point);
        else if (next.point < 0x80)
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
