#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth {

/// Parses the hexadecimal notation of published examples and skips white space.
[[nodiscard]] inline std::vector<std::byte> from_hex(std::string_view text) {
    std::vector<std::byte> bytes;
    bool is_second = false;
    for (const char each : text) {
        if (each == ' ' or each == '\n') continue;
        const auto digit = std::string_view("0123456789abcdef").find(static_cast<char>(each | 0x20));
        ENSURE(digit != std::string_view::npos);
        if (is_second) {
            bytes.back() |= static_cast<std::byte>(digit);
        } else {
            bytes.push_back(static_cast<std::byte>(digit << 4));
        }
        is_second = !is_second;
    }
    ENSURE(!is_second);
    return bytes;
}

[[nodiscard]] inline std::string to_hex(bytes_view bytes) {
    std::string text;
    for (const std::byte each : bytes) {
        text += "0123456789abcdef"[std::to_integer<unsigned>(each) >> 4];
        text += "0123456789abcdef"[std::to_integer<unsigned>(each) & 15];
    }
    return text;
}

[[nodiscard]] inline bytes_view as_bytes(std::string_view text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

template <std::size_t Size>
[[nodiscard]] std::array<std::byte, Size> array_from_hex(std::string_view text) {
    const auto bytes = from_hex(text);
    ENSURE(bytes.size() == Size);
    std::array<std::byte, Size> array;
    std::copy(bytes.begin(), bytes.end(), array.begin());
    return array;
}

}  // namespace sluice::smb::auth
