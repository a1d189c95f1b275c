#include "sluice/cli/serve/setting_records.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "sluice/base/bytes.hpp"
#include "sluice/base/case_fold.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/terminal_character.hpp"
#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::cli {
namespace {

constexpr const char* hidden_text = "***";

[[nodiscard]] std::string without_password(std::string text) {
    const std::size_t percent = text.find('%');
    return percent == std::string::npos ? text : text.substr(0, percent + 1) + hidden_text;
}

using digest = std::array<std::byte, 32>;
using smb::auth::hmac_sha256;

[[nodiscard]] hmac_sha256 keyed_hash() noexcept {
    smb::auth::secret_bytes<32> key;
    system_random().fill(key.mutable_view());
    return hmac_sha256(key.view());
}

[[nodiscard]] digest digest_of(const hmac_sha256& hash, std::span<const bytes_view> parts) noexcept {
    const auto code = hash.code(parts);
    digest copy{};
    std::ranges::copy(code.view(), copy.begin());
    return copy;
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
    for (std::size_t at = 0; at != text.size();) {
        const name_character next = character_at(text, at);
        const std::string_view shown = text.substr(at, next.length);
        if (shown == "\"" or shown == "\\")
            quoted.append("\\").append(shown);
        else if (controls_terminal(next.point))
            quoted += fmt::format("\\u{:04X}", static_cast<std::uint32_t>(next.point));
        else
            quoted += shown;
        at += next.length;
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
    if (key != "user") return value;
    if (auto* const text = std::get_if<std::string>(&value)) *text = without_password(std::move(*text));
    if (auto* const list = std::get_if<std::vector<std::string>>(&value))
        for (std::string& each : *list)
            each = without_password(std::move(each));
    return value;
}

digest secret_digest(std::string_view key, const setting_value& value) {
    static const hmac_sha256 hash = keyed_hash();
    if (without_secrets(key, value) == value) return {};
    digest all{};
    // Each code covers the one before, so that the limits of the texts count.
    const auto add = [&](std::string_view text) {
        const std::array<bytes_view, 2> parts{bytes_view(all), std::as_bytes(std::span(text))};
        all = digest_of(hash, parts);
    };
    if (const auto* const text = std::get_if<std::string>(&value)) add(*text);
    if (const auto* const source = std::get_if<toml_source>(&value)) add(source->text);
    if (const auto* const list = std::get_if<std::vector<std::string>>(&value))
        for (const std::string& each : *list)
            add(each);
    return all;
}

}  // namespace sluice::cli
