#include "sluice/cli/user_names.hpp"

#include <fmt/core.h>

#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli {

std::string validate_user_name(const std::string& name) {
    if (smb::server::user_database::is_valid_name(name)) return "";
    return "use 1 to 64 characters, none of :\"/\\[]|<>+=;,?*@ and no control characters";
}

std::string user_command(const std::string& users_file) {
    return users_file.empty() ? "sluice user" : "sluice user --users-file " + users_file;
}

std::string unknown_user(const std::string& name, const std::string& users_file) {
    return fmt::format("unknown user '{0}'; run '{1} add {0}' to create it", name, user_command(users_file));
}

}  // namespace sluice::cli
