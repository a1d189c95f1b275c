#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace sluice {

/// Appends a decimal number, with zeros before it up to `digits`. Allocates: in the text.
inline void append_padded(std::string& to, std::uint64_t number, std::size_t digits) {
    std::array<char, 20> text;
    const auto written = std::to_chars(text.data(), text.data() + text.size(), number);
    const auto length = static_cast<std::size_t>(written.ptr - text.data());
    if (length < digits) to.append(digits - length, '0');
    to.append(text.data(), length);
}

}  // namespace sluice
