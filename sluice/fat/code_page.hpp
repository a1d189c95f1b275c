#pragma once

#include <cstdint>
#include <optional>

namespace sluice::fat {

/// Which characters the bytes of short names stand for; nothing on a volume says it.
enum class code_page : std::uint8_t { ascii, cp437, cp850, cp852, cp866, cp1252 };

/// The character of a byte; U+FFFD if the page has none. Complexity: constant.
[[nodiscard]] char16_t decode(unsigned char byte, code_page page) noexcept;
/// The byte of a character; nothing if the page has none. Invariant: decode(*encode(c)) == c.
/// Complexity: linear in the page.
[[nodiscard]] std::optional<unsigned char> encode(char32_t point, code_page page) noexcept;

}  // namespace sluice::fat
