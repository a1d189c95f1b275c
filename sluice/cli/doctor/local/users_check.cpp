// The users file: whether it exists, is for its owner alone, and has users.

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sluice/cli/doctor/local/local_checks.hpp"
#include "sluice/cli/user_names.hpp"
#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli::doctor {
namespace {

constexpr const char* check = "users";

}  // namespace

void check_users(local_state& state, finding_list& into) {
    const std::string& given = state.options.users_file;
    const std::string path = given.empty() ? smb::server::user_database::default_path() : given;
    const std::string add = user_command(given) + " add NAME";
    // A running server may use another file than the default one, which only its configuration
    // names.
    const bool is_guess = given.empty() and state.configuration.empty() and not state.servers.empty();
    // A user with a password in the options needs no entry in the file.
    const bool has_users =
        std::ranges::any_of(state.options.users, [](const std::string& one) { return one.contains('%'); });
    struct stat status{};
    if ((is_guess or has_users) and ::access(path.c_str(), F_OK) != 0) return;
    if (::stat(path.c_str(), &status) != 0) {
        const bool is_missing = errno == ENOENT;
        into.add({.level = severity::warning,
                  .check = check,
                  .what = is_missing
                              ? "there is no users file yet, so that no user can log on"
                              : fmt::format("the users file cannot be examined: {}", std::strerror(errno)),
                  .evidence = path,
                  .remedy = is_missing ? add : "run this command as the account of the server, or as root"});
        return;
    }
    constexpr unsigned for_others = 077;
    if ((status.st_mode & for_others) != 0) {
        into.add({.level = severity::problem,
                  .check = check,
                  .what = "other accounts can access the users file, so that the server does not use it",
                  .evidence = fmt::format("{}: mode {:04o}", path, status.st_mode & 07777U),
                  .remedy = "chmod 600 " + shell_word(path)});
        return;
    }
    if (const auto account = state.account.user_id; account != 0 and status.st_uid != account) {
        into.add({.level = severity::problem,
                  .check = check,
                  .what = fmt::format(
                      "the users file belongs to another account than that of the server (user {})", account),
                  .evidence = fmt::format("{}: owner {}", path, status.st_uid),
                  .remedy = fmt::format("chown {} {}", account, shell_word(path))});
        return;
    }
    const auto loaded = smb::server::user_database::load(path, {});
    if (not loaded) {
        const bool is_denied = loaded.error().code() == EACCES;
        into.add({.level = is_denied ? severity::warning : severity::problem,
                  .check = check,
                  .what = is_denied ? "this account cannot read the users file" : "the users file is invalid",
                  .evidence = loaded.error().message(),
                  .remedy = is_denied ? "run this command as the account of the server, or as root"
                                      : fmt::format("correct the line, or remove it from {}", path)});
        return;
    }
    const std::size_t count = (*loaded)->names().size();
    if (count == 0 and not has_users)
        into.add({.level = severity::warning,
                  .check = check,
                  .what = "the users file has no users, so that no user can log on",
                  .evidence = path,
                  .remedy = add});
    else
        into.note(check, fmt::format("the users file has {} user{}", count, count == 1 ? "" : "s"), path);
}

}  // namespace sluice::cli::doctor
