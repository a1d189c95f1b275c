#include "sluice/cli/config/effective_settings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <variant>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/status/status_socket.hpp"
#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli {
namespace {

// The lists of a share to which complete_shares() appends those of the server.
constexpr std::array<std::string_view, 2> appended_lists{"read-only-user", "auditor"};
// Settings of a share that are not completed with those of the server. The rules for hosts of both
// apply, each at its own time.
constexpr std::array<std::string_view, 3> own_settings{"name", "allowed-host", "denied-host"};

// Returns the default that the help of --KEY states, or an empty text.
[[nodiscard]] std::string default_of(std::string_view key, const help_page& page) {
    const std::string name = fmt::format("--{}", key);
    const auto option = std::ranges::find(page.options, name, &help_option::names);
    if (option == page.options.end()) return "";
    constexpr std::string_view beginning = "[default: ";
    const std::size_t at = option->what.find(beginning);
    if (at == std::string::npos) return option->present_default;
    const std::size_t from = at + beginning.size();
    return option->what.substr(from, option->what.find(']', from) - from);
}

// A setting that is on by default has an option that turns it off.
[[nodiscard]] bool is_on_by_default(std::string_view key, const help_page& page) {
    return std::ranges::find(page.options, fmt::format("--no-{}", key), &help_option::names) !=
           page.options.end();
}

[[nodiscard]] effective_origin origin_of(setting_origin origin) noexcept {
    if (origin == setting_origin::unset) return effective_origin::standard;
    // A list of both begins with the values of the command line.
    return origin == setting_origin::file ? effective_origin::file : effective_origin::command_line;
}

[[nodiscard]] effective_setting effective(const setting_record& record, const help_page& page) {
    effective_setting setting{
        .key = record.key, .value = record.value, .origin = origin_of(record.origin), .line = record.line};
    if (record.origin != setting_origin::unset) return setting;
    setting.default_text = default_of(record.key, page);
    if (setting.default_text.empty() and record.kind == setting_kind::boolean)
        setting.value = is_on_by_default(record.key, page);
    return setting;
}

// Replaces the default of a path by the path that the environment determines.
void apply_environment(effective_setting& setting) {
    if (setting.origin != effective_origin::standard) return;
    const auto decided_by = [](std::initializer_list<const char*> names) -> std::string {
        for (const char* const name : names)
            if (const char* const value = std::getenv(name); value != nullptr and *value == '/') return name;
        return "";
    };
    if (setting.key == "users-file") {
        setting.value = smb::server::user_database::default_path();
        setting.default_text.clear();
        setting.source = decided_by({"XDG_CONFIG_HOME", "HOME"});
    } else if (setting.key == "status-socket") {
        setting.default_text = status_directory() + "/PORT.sock";
        setting.source = decided_by({"XDG_RUNTIME_DIR"});
    } else {
        return;
    }
    if (not setting.source.empty()) setting.origin = effective_origin::environment;
}

// Completes a setting of a share with that of the server, which has the same name and type.
void inherit(effective_setting& own, setting_kind kind, const setting_record* general) {
    if (general == nullptr or general->kind != kind or general->origin == setting_origin::unset or
        std::ranges::find(own_settings, own.key) != own_settings.end())
        return;
    auto* const own_list = std::get_if<std::vector<std::string>>(&own.value);
    const auto* const general_list = std::get_if<std::vector<std::string>>(&general->value);
    const bool is_appended = std::ranges::find(appended_lists, own.key) != appended_lists.end();
    if (own_list != nullptr and general_list != nullptr and is_appended) {
        own_list->insert(own_list->end(), general_list->begin(), general_list->end());
        own.adds_to_server = true;
        return;
    }
    const bool* const is = std::get_if<bool>(&own.value);
    const bool is_off = is != nullptr and not * is;
    if (own.origin != effective_origin::standard and not is_off) return;
    own.value = general->value;
    // A password is part of the server's setting only.
    auto* const users = std::get_if<std::vector<std::string>>(&own.value);
    if (own.key == "user" and users != nullptr)
        for (std::string& each : *users)
            each = each.substr(0, each.find('%'));
    own.default_text.clear();
    own.line = general->line;
    own.origin = effective_origin::inherited;
    if (general->origin != setting_origin::file) own.source = "command line";
}

// Without the setting of a share, that of the server decides what guests can do.
void inherit_guest(effective_setting& own, const table_record& server) {
    if (own.key != "guest" or own.origin != effective_origin::standard) return;
    const setting_record* const writes = server.find("guest-write");
    const bool* const is = writes == nullptr ? nullptr : std::get_if<bool>(&writes->value);
    own.default_text = "read";
    if (is == nullptr or not*is) return;
    own.value = std::string("write");
    own.default_text.clear();
    own.line = writes->line;
    own.origin = effective_origin::inherited;
    if (writes->origin != setting_origin::file) own.source = "command line";
}

}  // namespace

effective_configuration effective_settings(const serve_options& options, const help_page& page) {
    const configuration_record& record = *options.record;
    ENSURE(record.shares.size() == options.shares.size(), "all shares are those of the file");
    effective_configuration all;
    for (const setting_record& each : record.server.settings) {
        all.server.settings.push_back(effective(each, page));
        apply_environment(all.server.settings.back());
    }
    for (std::size_t i = 0; i != record.shares.size(); ++i) {
        effective_table& table = all.shares.emplace_back();
        table.name = options.shares[i].name;
        for (const setting_record& each : record.shares[i].settings) {
            effective_setting setting = effective(each, page);
            if (each.key == "name" and setting.origin == effective_origin::standard)
                setting.default_text = options.shares[i].name;
            const bool is_of_files = options.shares[i].referral.empty();
            if (is_of_files) inherit(setting, each.kind, record.server.find(each.key));
            if (is_of_files) inherit_guest(setting, record.server);
            table.settings.push_back(std::move(setting));
        }
    }
    return all;
}

std::string origin_text(const effective_setting& setting, const std::string& file) {
    const std::string place = fmt::format("{}:{}", file, setting.line);
    switch (setting.origin) {
        case effective_origin::standard:
            return "default";
        case effective_origin::file:
            return setting.adds_to_server ? place + " and all shares" : place;
        case effective_origin::command_line:
            return setting.line == 0 ? "command line" : "command line, " + place;
        case effective_origin::environment:
            return "environment: " + setting.source;
        case effective_origin::inherited:
            return (setting.source.empty() ? place : setting.source) + ", for all shares";
    }
    ENSURE(false, "every origin has a text");
    return "";
}

}  // namespace sluice::cli
