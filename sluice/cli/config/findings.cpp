#include "sluice/cli/config/findings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "sluice/cli/message.hpp"

namespace sluice::cli {

void findings::add(finding one) {
    errors_ += one.is_error ? 1 : 0;
    all_.push_back(std::move(one));
}

void findings::print() && {
    std::multimap<unsigned, finding> sorted;  // those of one line stay in their order
    for (finding& each : all_)
        sorted.emplace(each.line, std::move(each));
    for (const auto& [line, each] : sorted) {
        const std::string where = line == 0 ? path_ : fmt::format("{}: line {}", path_, line);
        const std::string text = fmt::format("{}: {}", where, each.text);
        each.is_error ? print_error(text) : warn(text);
    }
}

unsigned line_of(const table_record& table, std::string_view key) noexcept {
    const setting_record* const setting = table.find(key);
    return setting != nullptr and setting->line != 0 ? setting->line : table.line;
}

unsigned line_of(const table_record& table, std::string_view key, std::string_view element) noexcept {
    const setting_record* const setting = table.find(key);
    const auto* const list =
        setting != nullptr ? std::get_if<std::vector<std::string>>(&setting->value) : nullptr;
    if (list == nullptr) return line_of(table, key);
    // The list may begin with values of the command line.
    const std::size_t known = std::min(setting->element_lines.size(), list->size());
    for (std::size_t i = 0; i != known; ++i)
        if ((*list)[list->size() - known + i] == element)
            return setting->element_lines[setting->element_lines.size() - known + i];
    return line_of(table, key);
}

}  // namespace sluice::cli
