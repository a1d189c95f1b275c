#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/smb/server/report/event_log.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli {

/// The users of a server: from the command line, from the users file, or a new one.
struct users_result {
    std::unique_ptr<smb::server::user_database> database;
    std::vector<std::string> names;
    std::string fresh_password;  // if a user was created
    bool are_for_now = false;    // some have passwords from the command line
};

/// Returns the name of the account that runs the server. Blocks: reads the databases of accounts.
[[nodiscard]] std::string account_name();

/// Admits the users of --user, with the passwords given there; without it, all in the users file.
/// Returns their names. Errors: an unknown user, or a password that is not UTF-8.
[[nodiscard]] std::expected<std::vector<std::string>, std::string> admit_users(
    smb::server::user_database& users, const serve_options& options);

/// Opens the users file, and admits the users of --user, or all. Creates a user with the name of
/// the account if there is none. Prints the reason and leaves on failure.
/// Allocates: yes. Blocks: reads and writes the file. Thread safety: before other threads start.
[[nodiscard]] users_result open_users(const serve_options& options);

/// Ends the sessions of users that are not admitted any more, at once. Thread safety: the loop's
/// thread.
void end_sessions_of_removed_users(smb::server::smb_server& server, smb::server::event_log& log);

/// Carries out SIGHUP for the users file, at once. On error, the current users stay.
/// Blocks: reads the file. Thread safety: the loop's thread.
void reload_users(smb::server::smb_server& server, smb::server::user_database& users,
                  smb::server::event_log& log);

}  // namespace sluice::cli
