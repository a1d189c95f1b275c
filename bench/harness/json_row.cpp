#include "bench/harness/json_row.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "sluice/base/json_string.hpp"

namespace sluice::bench {
namespace {

// Returns the shortest form of `value` rounded to six significant digits: 1234570 and not
// 1.23457e+06.
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
    return add_raw(name, json_string(value));
}

json_row& json_row::add(std::string_view name, double value) {
    return add_raw(name, rounded(value));
}

json_row& json_row::add_raw(std::string_view name, std::string_view value) {
    if (!fields_.empty()) fields_ += ',';
    append_json_string(fields_, name);
    fields_ += ':';
    fields_ += value;
    return *this;
}

}  // namespace sluice::bench
