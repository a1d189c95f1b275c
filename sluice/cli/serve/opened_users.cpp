#include "sluice/cli/serve/opened_users.hpp"

#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <expected>
#include <utility>

#include "sluice/cli/message.hpp"
#include "sluice/cli/password.hpp"
#include "sluice/cli/user_edits.hpp"
#include "sluice/cli/user_names.hpp"
#include "sluice/smb/auth/logon/nt_hash.hpp"

namespace sluice::cli {

using smb::server::smb_server;
using smb::server::user_database;

std::string account_name() {
    const passwd* const account = getpwuid(geteuid());
    return account != nullptr ? account->pw_name : "sluice";
}

std::expected<std::vector<std::string>, std::string> admit_users(user_database& users,
                                                                 const serve_options& options) {
    std::vector<std::string> names;
    std::vector<user_database::admission> admitted;
    for (const std::string& wanted : options.users) {
        const std::size_t percent = wanted.find('%');
        names.push_back(wanted.substr(0, percent));
        admitted.push_back({.name = names.back(), .password = {}});
        if (percent != std::string::npos) admitted.back().password = wanted.substr(percent + 1);
        if (admitted.back().password and not smb::auth::nt_hash::of_password(*admitted.back().password))
            return std::unexpected(fmt::format("the password of user '{}' is not UTF-8", names.back()));
        if (admitted.back().password) continue;
        if (not users.contains(names.back()))
            return std::unexpected(unknown_user(names.back(), options.users_file));
    }
    if (const auto done = users.admit(admitted); not done) return std::unexpected(done.error().message());
    return names;
}

void end_sessions_of_removed_users(smb_server& server, smb::server::event_log& log) {
    if (const std::size_t removed = server.end_sessions_of_removed_users(); removed != 0)
        log.write(smb::server::event_severity::info, "ended sessions of removed users",
                  {{"sessions", std::to_string(removed)}});
}

void reload_users(smb_server& server, user_database& users, smb::server::event_log& log) {
    using smb::server::event_severity;
    if (const auto fresh = users.reload(); not fresh)
        log.write(event_severity::error, "cannot reload users; keeping the current users",
                  {{"path", users.path()}, {"why", fresh.error().message()}});
    end_sessions_of_removed_users(server, log);
}

users_result open_users(const serve_options& options) {
    const std::string path = options.users_file.empty() ? user_database::default_path() : options.users_file;
    auto opened = user_database::open(path, exclude_editors);
    if (not opened) fail(opened.error().message());
    users_result users{
        .database = *std::move(opened), .names = {}, .fresh_password = {}, .are_for_now = false};
    auto admitted = admit_users(*users.database, options);
    if (not admitted) fail(admitted.error());
    users.names = *std::move(admitted);
    users.are_for_now =
        std::ranges::any_of(options.users, [](const std::string& one) { return one.contains('%'); });
    if (users.names.empty()) users.names = users.database->names();
    if (users.names.empty()) {
        users.names.push_back(account_name());
        users.fresh_password = make_password();
        const auto made = users.database->set(users.names.front(), users.fresh_password);
        if (not made) fail(made.error().message());
    }
    return users;
}

}  // namespace sluice::cli
