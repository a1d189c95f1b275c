#include "sluice/cli/status/json_writer.hpp"

#include <fmt/core.h>

#include <cmath>

namespace sluice::cli {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

[[nodiscard]] bool is_continuation(std::string_view text, std::size_t at, unsigned low, unsigned high) {
    if (at >= text.size()) return false;
    const auto byte = static_cast<unsigned char>(text[at]);
    return byte >= low and byte <= high;
}

// How many bytes the character at `at` has; 0 if there is none (Unicode 15, table 3-7).
[[nodiscard]] std::size_t character_bytes(std::string_view text, std::size_t at) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) return 1;
    if (first < 0xc2 or first > 0xf4) return 0;
    const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    const std::size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (not is_continuation(text, at + 1, low, high)) return 0;
    for (std::size_t i = 2; i != bytes; ++i)
        if (not is_continuation(text, at + i, 0x80, 0xbf)) return 0;
    return bytes;
}

void append_ascii(std::string& into, char c) {
    if (c == '"' or c == '\\')
        (into += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20 or c == 0x7f)
        into += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
        into += c;
}

}  // namespace

void append_json_string(std::string& into, std::string_view text) {
    into += '"';
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t bytes = character_bytes(text, at);
        if (bytes == 1)
            append_ascii(into, text[at]);
        else
            into += bytes == 0 ? replacement : text.substr(at, bytes);
        at += bytes == 0 ? 1 : bytes;
    }
    into += '"';
}

void json_writer::separate() {
    if (needs_comma_) text_ += ',';
}

json_writer& json_writer::open(char bracket) {
    separate();
    text_ += bracket;
    needs_comma_ = false;
    return *this;
}

json_writer& json_writer::close(char bracket) {
    text_ += bracket;
    needs_comma_ = true;
    return *this;
}

json_writer& json_writer::raw(std::string_view text) {
    separate();
    text_ += text;
    needs_comma_ = true;
    return *this;
}

json_writer& json_writer::key(std::string_view name) {
    separate();
    append_json_string(text_, name);
    text_ += ':';
    needs_comma_ = false;
    return *this;
}

json_writer& json_writer::value(std::string_view text) {
    separate();
    append_json_string(text_, text);
    needs_comma_ = true;
    return *this;
}

json_writer& json_writer::value(bool is) {
    return raw(is ? "true" : "false");
}

json_writer& json_writer::value(double number) {
    return std::isfinite(number) ? raw(fmt::format("{:.1f}", number)) : null();
}

}  // namespace sluice::cli
