#include "sluice/cli/migration/smb_draft.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::cli {
namespace {

// The settings of a share without files.
constexpr std::array<std::string_view, 9> settings_of_referrals{
    "name", "referral", "comment", "hidden", "encrypt", "user", "guest", "allowed-host", "denied-host"};

}  // namespace

void smb_draft::set(std::string_view key, const setting_value& value) {
    if (is_referral and std::ranges::find(settings_of_referrals, key) == settings_of_referrals.end()) return;
    if (settings.emplace(key).second) lines += fmt::format("{} = {}\n", key, toml_text(value));
}

void smb_draft::note(smb_note_kind kind, const smb_parameter& about, std::string text) {
    const smb_parameter* const own = section.find(about.name);
    const bool is_own = own != nullptr and own->place.line == about.place.line;
    std::string subject = fmt::format("[{}] {}", is_own ? section.name : "global", about.shown);
    if (not reported.emplace(about.place.file, about.place.line, subject + text).second) return;
    notes.push_back(
        {.kind = kind, .place = about.place, .subject = std::move(subject), .text = std::move(text)});
}

void smb_draft::skip(const smb_place& place, std::string_view what, std::string text) {
    is_skipped = true;
    notes.push_back({.kind = smb_note_kind::error,
                     .place = place,
                     .subject = fmt::format("[{}]{}", section.name, what),
                     .text = "share skipped: " + std::move(text)});
}

void smb_draft::lose(const smb_parameter& about, std::string text) {
    if (not is_server()) return skip(about.place, " " + about.shown, std::move(text));
    lacks_restriction = true;
    note(smb_note_kind::error, about, "all shares skipped: " + std::move(text));
}

const setting_record* smb_draft::setting_of(const smb_row& row) const {
    return row.setting.empty() ? nullptr : known.find(row.setting);
}

const smb_parameter* smb_draft::effective(std::string_view name) const noexcept {
    const smb_parameter* const own = section.find(name);
    return own != nullptr or is_server() ? own : global.find_before(name, section.order);
}

bool smb_draft::is_set(std::string_view name, bool otherwise) const {
    const smb_parameter* const given = effective(name);
    return given == nullptr ? otherwise : smb_boolean(given->value).value_or(otherwise);
}

bool smb_draft::is_of_server(std::string_view name) const noexcept {
    return effective(name) == global.find(name);
}

}  // namespace sluice::cli
