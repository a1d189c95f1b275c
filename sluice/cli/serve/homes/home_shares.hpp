#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/smb/server/session/user_database.hpp"

// The shares that the setting `homes` gives to users: one for each, with the name of the user.
//
// Thread safety: pure functions, except for the options and the users that they are given.
// Allocates: texts and lists. Blocks: nothing; home_directories.hpp has the calls of the file
// system.

namespace sluice::cli {

/// The largest number of users that have a share of their own.
inline constexpr std::size_t home_shares_max = 1024;

/// In messages about a server without any share.
inline constexpr const char* no_shares =
    "no shares; add a table [[share]] with a path or a referral, or set homes";

/// Adds to the settings of a share those that the server has for all shares.
void add_server_settings(share_options& share, const serve_options& options);

/// Returns the rule that prevents a user of this name from having a share; empty if there is none.
/// The name is one component of a path, and neither hidden nor reserved.
[[nodiscard]] std::string why_not_home(const std::string& user);

/// Returns the users that can log on with these options, of which the server may apply those about
/// users later: all of the users file, or those that the setting `user` names.
[[nodiscard]] std::vector<std::string> home_users(const serve_options& options,
                                                  const smb::server::user_database& users);

/// Adds a share for each user to options that complete_shares() has completed, if they have
/// `homes`. A share of the configuration with the same name, compared without case, has precedence.
/// Users without a share are in `options.without_homes`. Errors: a text, if there are more than
/// `home_shares_max` users.
[[nodiscard]] std::expected<void, std::string> add_home_shares(serve_options& options,
                                                               const std::vector<std::string>& users);

/// Removes the shares of these users.
void remove_missing_homes(serve_options& options, const std::vector<user_without_home>& missing);

}  // namespace sluice::cli
