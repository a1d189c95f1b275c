#include "sluice/cli/serve/homes/home_shares.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::cli {
namespace {

[[nodiscard]] std::string path_of_home(std::string_view homes, std::string_view user) {
    while (homes.ends_with('/'))
        homes.remove_suffix(1);
    return fmt::format("{}/{}", homes, user);
}

[[nodiscard]] share_options home_of(const std::string& user, const serve_options& options) {
    share_options share;
    share.name = user;
    share.path = path_of_home(options.homes, user);
    share.comment = "Home directory";
    share.is_home = true;
    share.users = {user};
    share.guest = "off";
    add_server_settings(share, options);
    return share;
}

}  // namespace

void add_server_settings(share_options& share, const serve_options& options) {
    share.hide_unreadable = share.hide_unreadable or options.hide_unreadable;
    share.read_only_users.insert(share.read_only_users.end(), options.read_only_users.begin(),
                                 options.read_only_users.end());
    share.auditors.insert(share.auditors.end(), options.auditors.begin(), options.auditors.end());
}

std::string why_not_home(const std::string& user) {
    if (not smb::server::user_database::is_valid_name(user)) return "the name is not that of a user";
    // It would be the directory of all users, or the one above; and .NAME is hidden in the host.
    if (user.starts_with('.')) return "the name begins with a dot; rename the user";
    if (equal_ignoring_case(std::string_view(user), std::string_view("ipc$")))
        return "the name IPC$ is reserved for the protocol; rename the user";
    if (not smb::wire::utf16_bytes_of(user)) return "the name is not UTF-8; rename the user";
    return {};
}

std::vector<std::string> home_users(const serve_options& options, const smb::server::user_database& users) {
    if (options.users.empty()) return users.names();
    std::vector<std::string> named;
    for (const std::string& each : options.users) {
        const std::size_t percent = each.find('%');
        std::string name = each.substr(0, percent);
        // The server refuses the list, and its users stay.
        if (percent == std::string::npos and not users.contains(name)) return users.names();
        named.push_back(std::move(name));
    }
    return named;
}

std::expected<void, std::string> add_home_shares(serve_options& options,
                                                 const std::vector<std::string>& users) {
    options.without_homes.clear();
    if (options.homes.empty()) return {};
    if (users.size() > home_shares_max)
        return std::unexpected(
            fmt::format("homes: {} users, but at most {} can have a share of their own; name the users that "
                        "can log on in user, or remove homes",
                        users.size(), home_shares_max));
    std::set<std::string> configured;
    for (const share_options& share : options.shares)
        configured.insert(fold(share.name));
    std::set<std::string> known;
    for (const std::string& user : users) {
        if (not known.insert(fold(user)).second) continue;  // the setting `user` may repeat names
        std::string why = why_not_home(user);
        if (why.empty() and configured.contains(fold(user)))
            why = "a configured share has this name; rename that share";
        if (why.empty())
            options.shares.push_back(home_of(user, options));
        else
            options.without_homes.push_back({.user = user, .why = std::move(why)});
    }
    return {};
}

void remove_missing_homes(serve_options& options, const std::vector<user_without_home>& missing) {
    std::set<std::string_view> names;
    for (const user_without_home& each : missing)
        names.insert(each.user);
    std::erase_if(options.shares,
                  [&](const share_options& share) { return share.is_home and names.contains(share.name); });
}

}  // namespace sluice::cli
