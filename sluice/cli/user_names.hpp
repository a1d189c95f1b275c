#pragma once

#include <string>

namespace sluice::cli {

/// Returns the rule for names of users that this name violates, as option_syntax::check() needs it.
[[nodiscard]] std::string validate_user_name(const std::string& name);

/// Returns the command that manages the users of this file: "sluice user --users-file FILE". An
/// empty path: the default file.
[[nodiscard]] std::string user_command(const std::string& users_file);

/// Returns the message about a user that the file does not have, with the command that adds it.
[[nodiscard]] std::string unknown_user(const std::string& name, const std::string& users_file);

}  // namespace sluice::cli
