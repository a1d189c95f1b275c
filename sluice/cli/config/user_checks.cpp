#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/config/checks.hpp"
#include "sluice/cli/serve/host_accounts.hpp"
#include "sluice/cli/serve/serve_reports.hpp"
#include "sluice/cli/user_edits.hpp"
#include "sluice/cli/user_names.hpp"
#include "sluice/smb/server/report/event_log.hpp"
#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli {
namespace {

using smb::server::event_field;
using smb::server::event_severity;
using smb::server::user_database;

// Returns the line of the setting that names this user or group; that of the table if none does.
[[nodiscard]] unsigned line_in(const table_record& table, std::string_view name) noexcept {
    for (const setting_record& each : table.settings)
        if (const unsigned line = line_of(table, each.key, name);
            each.kind == setting_kind::list and line != line_of(table, each.key))
            return line;
    for (const setting_record& each : table.settings)
        if (const auto* const list = std::get_if<std::vector<std::string>>(&each.value))
            if (std::ranges::find(*list, name) != list->end()) return line_of(table, each.key);
    return table.line;
}

// The same, in the settings of a share or in those that it has from the server.
[[nodiscard]] unsigned line_with(const table_record& table, const table_record& server,
                                 std::string_view name) noexcept {
    if (const unsigned line = line_in(table, name); line != table.line) return line;
    const unsigned line = line_in(server, name);
    return line == server.line ? table.line : line;
}

// Takes the warnings that the server would log, and finds their lines in the file.
class warnings_of_server final : public smb::server::event_log {
public:
    warnings_of_server(const serve_options& options, findings& to) noexcept : options_(options), to_(to) {}

    void write(event_severity, std::string_view what,
               std::initializer_list<event_field> fields) noexcept override {
        const table_record* table = &options_.record->server;
        std::string text(what);
        std::string value;
        std::string hint;
        bool is_of_group = false;
        for (const event_field& field : fields) {
            if (field.name == "hint") {
                hint = fmt::format("; {}", field.value);
                continue;
            }
            text +=
                fmt::format("{} {} '{}'", text.size() == what.size() ? ":" : ",", field.name, field.value);
            if (field.name == "share") table = &table_of(field.value);
            if (field.name == "user") value = field.value;
            if (field.name == "group") is_of_group = true;
        }
        const table_record& server = options_.record->server;
        const unsigned line = is_of_group ? line_of(server, "groups") : line_with(*table, server, value);
        to_.add_warning(line, text + hint);
    }

private:
    [[nodiscard]] const table_record& table_of(std::string_view share) const noexcept {
        for (std::size_t i = 0; i != options_.shares.size(); ++i)
            if (options_.shares[i].name == share) return options_.record->shares[i];
        return options_.record->server;
    }

    const serve_options& options_;
    findings& to_;
};

// The users that may log on, of the setting `user` of the server.
void check_admitted(const serve_options& options, const user_database& users, findings& to) {
    for (const std::string& wanted : options.users) {
        if (wanted.contains('%') or users.contains(wanted)) continue;
        to.add_error(line_of(options.record->server, "user", wanted),
                     unknown_user(wanted, options.users_file));
    }
}

// The groups that [groups] does not have, which are those of the host.
void check_groups(serve_options options, const user_database& users, findings& to) {
    host_groups host(users);
    std::set<std::pair<unsigned, std::string>> reported;  // all shares have the lists of the server
    for (const missing_group& each : add_known_host_groups(options, host)) {
        const configuration_record& record = *options.record;
        const std::size_t share =
            each.share == nullptr ? 0 : static_cast<std::size_t>(each.share - options.shares.data());
        const table_record& table = each.share == nullptr ? record.server : record.shares[share];
        const unsigned line = line_with(table, record.server, each.entry);
        if (reported.emplace(line, each.entry).second) to.add_error(line, each.text);
    }
}

}  // namespace

void check_users(const serve_options& options, findings& to) {
    const std::string path = options.users_file.empty() ? user_database::default_path() : options.users_file;
    const unsigned line = line_of(options.record->server, "users-file");
    const auto users = user_database::open(path, exclude_editors);
    if (not users) return to.add_error(line, users.error().message());
    if ((*users)->is_empty() and options.users.empty())
        return to.add_warning(line,
                              fmt::format("{}: no users; the server creates one when it starts; run '{} "
                                          "add NAME' to add others",
                                          path, user_command(options.users_file)));
    check_admitted(options, **users, to);
    std::vector<user_database::admission> admitted;
    for (const std::string& wanted : options.users) {
        const std::size_t percent = wanted.find('%');
        admitted.push_back({.name = wanted.substr(0, percent), .password = {}});
        if (percent != std::string::npos) admitted.back().password = wanted.substr(percent + 1);
    }
    if (const auto done = (*users)->admit(admitted); not done)
        return to.add_error(line, done.error().message());
    check_groups(options, **users, to);
    warnings_of_server log(options, to);
    report_unknown_users(options, **users, log);
}

}  // namespace sluice::cli
