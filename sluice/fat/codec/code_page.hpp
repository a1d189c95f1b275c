#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace sluice::fat {

/// The character set of short names. A volume does not record it. Pages from cp932 on have
/// characters of two bytes, and are available if the host's iconv(3) supports them.
enum class code_page : std::uint8_t { ascii, cp437, cp850, cp852, cp866, cp1252, cp932, cp936, cp949, cp950 };

/// Returns whether decode() and encode() support more of a page than ASCII.
[[nodiscard]] bool is_available(code_page page) noexcept;

/// A character and the number of its bytes.
struct page_character {
    char16_t unit = 0;  // U+FFFD if the page has none
    std::size_t length = 1;
};
/// Returns the first character of `text`, which is not empty. Complexity: constant.
[[nodiscard]] page_character decode(std::span<const unsigned char> text, code_page page) noexcept;

/// One or two bytes.
struct page_bytes {
    std::array<unsigned char, 2> bytes{};
    std::size_t length = 1;
};
/// Returns the bytes of a character, or std::nullopt if the page does not contain it. Invariant:
/// decode(*encode(c)) == c.
/// Complexity: linear in the page.
[[nodiscard]] std::optional<page_bytes> encode(char32_t point, code_page page) noexcept;

}  // namespace sluice::fat
