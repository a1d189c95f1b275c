#include "sluice/cli/serve/configuration_changes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::cli {
namespace {

using smb::server::event_severity;

constexpr std::size_t lines_max = 200;
constexpr std::size_t value_bytes_max = 500;

// The settings of the server that a reload applies. All others need a restart. "version" has no
// effect.
constexpr std::array<std::string_view, 14> reloaded_settings{"user",
                                                             "administrator",
                                                             "groups",
                                                             "allowed-host",
                                                             "denied-host",
                                                             "read-only",
                                                             "read-only-user",
                                                             "auditor",
                                                             "hide-unreadable",
                                                             "guest-write",
                                                             "offload",
                                                             "short-names",
                                                             "previous-versions",
                                                             "version"};

// By folded name: the name and the settings.
using tables = std::map<std::string, std::pair<std::string, const table_record*>>;

// The shares of the file. Those of the command line come before them, and never change.
[[nodiscard]] tables tables_of(const serve_options& options) {
    tables all;
    if (options.record == nullptr) return all;
    const std::vector<table_record>& records = options.record->shares;
    ENSURE(options.shares.size() >= records.size(), "every table is a share");
    const std::size_t first = options.shares.size() - records.size();
    for (std::size_t i = 0; i != records.size(); ++i) {
        const std::string& name = options.shares[first + i].name;
        all.emplace(fold(name), std::pair(name, &records[i]));
    }
    return all;
}

[[nodiscard]] std::vector<setting_change> changed_settings(const table_record& before,
                                                           const table_record& after) {
    std::vector<setting_change> changes;
    for (const setting_record& fresh : after.settings) {
        const setting_record* const old = before.find(fresh.key);
        if (old != nullptr and old->value != fresh.value)
            changes.push_back(
                {.key = fresh.key, .before = toml_text(old->value), .after = toml_text(fresh.value)});
    }
    return changes;
}

void compare_servers(configuration_changes& to, const serve_options& started, const serve_options& before,
                     const serve_options& after) {
    if (started.record == nullptr or before.record == nullptr or after.record == nullptr) return;
    const auto is_reloaded = [](const setting_change& one) {
        return std::ranges::find(reloaded_settings, one.key) != reloaded_settings.end();
    };
    std::ranges::copy_if(changed_settings(before.record->server, after.record->server),
                         std::back_inserter(to.applied), is_reloaded);
    std::ranges::copy_if(changed_settings(started.record->server, after.record->server),
                         std::back_inserter(to.needs_restart), std::not_fn(is_reloaded));
}

// A list or a table may be too long for a line of the log.
[[nodiscard]] std::string shown(const std::string& value) {
    if (value.size() > value_bytes_max) return value.substr(0, value_bytes_max) + "...";
    return value.empty() ? "not set" : value;
}

[[nodiscard]] std::string text_of(const share_change& change) {
    std::string text;
    for (const setting_change& each : change.settings)
        text += fmt::format("{}{}: {} -> {}", text.empty() ? "" : "; ", each.key, shown(each.before),
                            shown(each.after));
    return text;
}

}  // namespace

bool configuration_changes::is_empty() const noexcept {
    return added.empty() and removed.empty() and changed.empty() and applied.empty() and
           needs_restart.empty();
}

configuration_changes changes_of(const serve_options& started, const serve_options& before,
                                 const serve_options& after) {
    configuration_changes changes;
    const tables old = tables_of(before);
    const tables fresh = tables_of(after);
    for (const auto& [key, table] : fresh) {
        const auto known = old.find(key);
        if (known == old.end()) {
            changes.added.push_back(table.first);
            continue;
        }
        auto settings = changed_settings(*known->second.second, *table.second);
        if (not settings.empty())
            changes.changed.push_back({.share = table.first, .settings = std::move(settings)});
    }
    for (const auto& [key, table] : old)
        if (not fresh.contains(key)) changes.removed.push_back(table.first);
    compare_servers(changes, started, before, after);
    return changes;
}

std::string summary_of(const configuration_changes& changes) {
    if (changes.is_empty()) return "none";
    std::string text;
    const auto add = [&](std::size_t count, std::string_view what, std::string_view how) {
        if (count == 0) return;
        text +=
            fmt::format("{}{} {}{} {}", text.empty() ? "" : ", ", count, what, count == 1 ? "" : "s", how);
    };
    add(changes.added.size(), "share", "added");
    add(changes.removed.size(), "share", "removed");
    add(changes.changed.size(), "share", "changed");
    add(changes.applied.size(), "setting", "changed");
    std::string restart;
    for (const setting_change& each : changes.needs_restart)
        restart += (restart.empty() ? "" : ", ") + each.key;
    if (not restart.empty()) text += (text.empty() ? "" : "; ") + ("restart needed for " + restart);
    return text;
}

std::string running_configuration::replace(const serve_options& fresh, bool keeps_users,
                                           smb::server::event_log& log) {
    configuration_changes changes = changes_of(started_, now_, fresh);
    if (keeps_users)
        std::erase_if(changes.applied, [](const setting_change& one) { return one.key == "user"; });
    now_ = fresh;
    std::size_t lines = 0;
    const auto write = [&](event_severity severity, std::string_view what,
                           std::initializer_list<smb::server::event_field> fields) {
        if (lines++ < lines_max) log.write(severity, what, fields);
    };
    for (const std::string& name : changes.added)
        write(event_severity::info, "share added", {{"share", name}});
    for (const std::string& name : changes.removed)
        write(event_severity::info, "share removed", {{"share", name}});
    for (const share_change& each : changes.changed)
        write(event_severity::info, "share changed", {{"share", each.share}, {"settings", text_of(each)}});
    for (const setting_change& each : changes.applied)
        write(event_severity::info, "setting changed",
              {{"setting", each.key}, {"before", shown(each.before)}, {"after", shown(each.after)}});
    for (const setting_change& each : changes.needs_restart)
        write(event_severity::warning, "a changed setting has no effect before a restart",
              {{"setting", each.key}, {"before", shown(each.before)}, {"after", shown(each.after)}});
    return summary_of(changes);
}

}  // namespace sluice::cli
