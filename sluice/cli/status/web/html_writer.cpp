#include "sluice/cli/status/web/html_writer.hpp"

#include <fmt/core.h>

#include <cmath>

#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {

namespace {

[[nodiscard]] bool continues_character(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

// Cuts a text between two characters.
[[nodiscard]] std::string_view beginning_of(std::string_view text, std::size_t bytes) noexcept {
    while (bytes != 0 and continues_character(text[bytes]))
        --bytes;
    return text.substr(0, bytes);
}

[[nodiscard]] std::string_view escaped(const char& c) noexcept {
    switch (c) {
        case '&':
            return "&amp;";
        case '<':
            return "&lt;";
        case '>':
            return "&gt;";
        case '"':
            return "&quot;";
        case '\'':
            return "&#39;";
        default:
            return {&c, 1};
    }
}

}  // namespace

html_writer& html_writer::text(std::string_view from_outside) {
    const bool is_long = from_outside.size() > text_bytes_max;
    const std::string shown =
        terminal_text(is_long ? beginning_of(from_outside, text_bytes_max) : from_outside);
    for (const char& c : shown)
        document_ += escaped(c);
    if (is_long) document_ += "…";
    return *this;
}

html_writer& html_writer::number(std::uint64_t value) {
    document_ += std::to_string(value);
    return *this;
}

html_writer& html_writer::decimal(double value) {
    document_ += fmt::format("{:.1f}", std::isfinite(value) ? value : 0.0);
    return *this;
}

}  // namespace sluice::cli
