#include "sluice/cli/status/text_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {

namespace {

[[nodiscard]] bool begins_character(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
}

// Returns the number of characters, an approximation of the columns on a terminal.
[[nodiscard]] std::size_t width_of(std::string_view text) noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

// Keeps the end of the text, which is the more informative part of a path.
[[nodiscard]] std::string last_of(const std::string& text, std::size_t width) {
    const std::size_t all = width_of(text);
    if (all <= width) return text;
    std::size_t at = 0;
    for (std::size_t dropped = 0; at < text.size(); ++at)
        if (begins_character(text[at]) and dropped++ == all - (width - 1)) break;
    return "…" + text.substr(at);
}

void append_cell(std::string& line, const std::string& text, std::size_t width, bool is_right) {
    const std::string space(width - std::min(width, width_of(text)), ' ');
    if (not line.empty()) line += "  ";
    line += is_right ? space + text : text + space;
}

}  // namespace

void text_table::add(std::vector<std::string> row) {
    ENSURE(row.size() == columns_.size(), "a row has a cell for each column");
    for (std::string& cell : row)
        cell = terminal_text(cell);
    rows_.push_back(std::move(row));
}

std::vector<std::size_t> text_table::widths() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i != columns_.size(); ++i) {
        std::size_t width = width_of(columns_[i].heading);
        for (const auto& row : rows_)
            width = std::max(width, width_of(row[i]));
        all.push_back(width);
    }
    std::size_t sum = 2 * (all.size() - 1);
    for (const std::size_t width : all)
        sum += width;
    std::size_t excess = sum - std::min(sum, width_);
    constexpr std::size_t stretched_min = 12;
    for (std::size_t i = columns_.size(); i-- != 0;) {
        if (columns_[i].kind != column_kind::stretched or all[i] <= stretched_min) continue;
        const std::size_t cut = std::min(excess, all[i] - stretched_min);
        all[i] -= cut;
        excess -= cut;
    }
    return all;
}

std::string text_table::text() const {
    if (rows_.empty()) return {};
    const std::vector<std::size_t> wide = widths();
    std::string text;
    const auto add_line = [&](const auto& cell_of) {
        std::string line;
        for (std::size_t i = 0; i != columns_.size(); ++i)
            append_cell(line, last_of(cell_of(i), wide[i]), wide[i], columns_[i].kind == column_kind::number);
        text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    };
    add_line([&](std::size_t i) { return columns_[i].heading; });
    for (const auto& row : rows_)
        add_line([&](std::size_t i) { return row[i]; });
    return text;
}

std::string bytes_text(double bytes) {
    constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    std::size_t unit = 0;
    while (bytes >= 999.5 and unit + 1 != units.size()) {
        bytes /= 1000;
        ++unit;
    }
    const bool is_whole = unit == 0 or bytes >= 99.95;
    return is_whole ? fmt::format("{:.0f} {}", bytes, units[unit])
                    : fmt::format("{:.1f} {}", bytes, units[unit]);
}

}  // namespace sluice::cli
