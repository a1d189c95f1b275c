#include "sluice/cli/byte_size.hpp"

#include <fmt/core.h>

#include <cctype>
#include <charconv>
#include <string_view>
#include <system_error>

#include "sluice/base/bytes.hpp"

namespace sluice::cli {

std::optional<std::uint64_t> parse_size(std::string text) {
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{}) return std::nullopt;
    std::string unit(parsed.ptr);
    std::erase(unit, ' ');
    for (char& c : unit)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (unit.ends_with('b')) unit.pop_back();
    if (unit.size() == 2 and unit.ends_with('i')) unit.pop_back();
    const std::size_t power = unit.empty() ? 0 : std::string_view("kmgt").find(unit.front()) + 1;
    if (unit.size() > 1 or (power == 0 and not unit.empty())) return std::nullopt;
    return checked_mul(number, std::uint64_t{1} << (10 * power));
}

std::string validate_size(const std::string& text) {
    return parse_size(text) ? "" : "use a number of bytes with an optional suffix k, m, g, or t";
}

std::string size_text(std::uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{} bytes", bytes);
    auto amount = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; amount >= 1024 and unit != 4; ++unit)
        amount /= 1024;
    return fmt::format("{:.1f} {}iB", amount, " KMGT"[unit]);
}

}  // namespace sluice::cli
