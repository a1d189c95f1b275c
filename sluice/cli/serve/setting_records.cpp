#include "sluice/cli/serve/setting_records.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::cli {
namespace {

constexpr const char* hidden_text = "***";

[[nodiscard]] bool is_secret(std::string_view key) noexcept {
    constexpr std::array<std::string_view, 3> words{"password", "secret", "token"};
    return std::ranges::any_of(words, [&](std::string_view word) { return key.contains(word); });
}

[[nodiscard]] std::string without_password(std::string text) {
    const std::size_t percent = text.find('%');
    return percent == std::string::npos ? text : text.substr(0, percent + 1) + hidden_text;
}

}  // namespace

const setting_record* table_record::find(std::string_view key) const noexcept {
    const auto found = std::ranges::find(settings, key, &setting_record::key);
    return found == settings.end() ? nullptr : &*found;
}

std::vector<std::string> table_record::keys() const {
    std::vector<std::string> all;
    for (const setting_record& each : settings)
        all.push_back(each.key);
    return all;
}

std::string toml_string(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' or c == '\\')
            quoted += {'\\', c};
        else if (byte < 0x20 or byte == 0x7f)
            quoted += fmt::format("\\u{:04X}", byte);
        else
            quoted += c;
    }
    return quoted + '"';
}

std::string toml_text(const setting_value& value) {
    if (const auto* const is = std::get_if<bool>(&value)) return *is ? "true" : "false";
    if (const auto* const number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
    if (const auto* const text = std::get_if<std::string>(&value)) return toml_string(*text);
    if (const auto* const source = std::get_if<toml_source>(&value)) return source->text;
    const auto* const list = std::get_if<std::vector<std::string>>(&value);
    if (list == nullptr) return "";
    std::string text;
    for (const std::string& each : *list)
        text += (text.empty() ? "[" : ", ") + toml_string(each);
    return text.empty() ? "[]" : text + "]";
}

setting_value without_secrets(std::string_view key, setting_value value) {
    if (std::holds_alternative<std::monostate>(value)) return value;
    if (is_secret(key)) return std::string(hidden_text);
    if (key != "user") return value;
    if (auto* const text = std::get_if<std::string>(&value)) *text = without_password(std::move(*text));
    if (auto* const list = std::get_if<std::vector<std::string>>(&value))
        for (std::string& each : *list)
            each = without_password(std::move(each));
    return value;
}

}  // namespace sluice::cli
