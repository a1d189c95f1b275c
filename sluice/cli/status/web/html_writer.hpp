#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::cli {

/// HTML or SVG that the source code contains. No text that is known at run time becomes markup, so
/// no name of a client does.
class markup {
public:
    template <std::size_t Size>
    // NOLINTNEXTLINE(google-explicit-constructor): a literal is markup
    consteval markup(const char (&literal)[Size]) noexcept : text_(literal, Size - 1) {}

    [[nodiscard]] std::string_view text() const noexcept { return text_; }

private:
    std::string_view text_;
};

/// Writes one HTML document, in the order of the calls. Allocates: the document.
class html_writer {
public:
    /// Longer texts end in an ellipsis.
    static constexpr std::size_t text_bytes_max = 400;

    html_writer& add(markup literal) {
        document_ += literal.text();
        return *this;
    }
    /// Writes a text from outside, for the content of an element or a quoted attribute: markup is
    /// escaped, and characters that control a terminal or the direction of the text, and bytes that
    /// are not UTF-8, are replaced by question marks.
    html_writer& text(std::string_view from_outside);
    html_writer& number(std::uint64_t value);
    /// Writes a number with one digit after the decimal point; 0 if it is not finite.
    html_writer& decimal(double value);

    [[nodiscard]] std::string take() { return std::exchange(document_, {}); }

private:
    std::string document_;
};

}  // namespace sluice::cli
