#include "bench/harness/json_row.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace sluice::bench {
namespace {

std::string quoted(std::string_view text) {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' or c == '\\') {
            result += '\\';
            result += c;
        } else if (byte < 0x20) {
            result += "\\u00";
            result += digits[byte >> 4];
            result += digits[byte & 15];
        } else {
            result += c;  // the rest, UTF-8 included, stands for itself
        }
    }
    return result + '"';
}

// The shortest form of `value` rounded to six significant digits: 1234570 and not 1.23457e+06.
std::string rounded(double value) {
    if (!std::isfinite(value)) return "null";
    std::array<char, 32> text{};
    const auto written =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 6);
    double short_value = 0;
    std::from_chars(text.data(), written.ptr, short_value);
    const auto end = std::to_chars(text.data(), text.data() + text.size(), short_value).ptr;
    return {text.data(), end};
}

}  // namespace

json_row& json_row::add(std::string_view name, std::string_view value) {
    return add_raw(name, quoted(value));
}

json_row& json_row::add(std::string_view name, double value) {
    return add_raw(name, rounded(value));
}

json_row& json_row::add_raw(std::string_view name, std::string_view value) {
    if (!fields_.empty()) fields_ += ',';
    fields_ += quoted(name);
    fields_ += ':';
    fields_ += value;
    return *this;
}

}  // namespace sluice::bench
