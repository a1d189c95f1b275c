// The findings about logons; logon_steps.cpp obtains the facts.

#include "sluice/cli/doctor/remote/logon.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sluice/cli/user_names.hpp"

namespace sluice::cli::doctor {

using smb::client::client_error;
using smb::wire::nt_status;

namespace {

[[nodiscard]] finding problem(std::string check, std::string what, const client_error& why,
                              std::string remedy) {
    return {.level = severity::problem,
            .check = std::move(check),
            .what = std::move(what),
            .evidence = why.message(),
            .remedy = std::move(remedy)};
}

[[nodiscard]] finding refused_logon(const remote_target& target, const client_error& why,
                                    known_account account) {
    const std::string& user = target.user;
    const std::string word = shell_word(user);
    if (why.which() == client_error::kind::policy)
        return problem(
            "logon", fmt::format("the server accepts '{}' only as a guest, without signing", user), why,
            fmt::format("add the user on the server: sluice user add {0}; Samba: smbpasswd -a {0}, and "
                        "'map to guest = never'",
                        word));
    if (why.status() != nt_status::logon_failure)
        return problem("logon", fmt::format("the server refused the logon of '{}'", user), why,
                       "correct what the status says, and run this command again");
    switch (account) {
        case known_account::missing:
            return problem("logon",
                           fmt::format("the users file of this host does not have the user '{}'", user), why,
                           "sluice user add " + word);
        case known_account::wrong_password:
            return problem("logon",
                           fmt::format("the password of '{}' is wrong; the users file of this host has the "
                                       "user",
                                       user),
                           why, "sluice user passwd " + word);
        case known_account::same_password:
            return problem("logon",
                           fmt::format("the users file of this host has '{}' with this password, but the "
                                       "server refused the logon",
                                       user),
                           why,
                           "kill -HUP the server so that it reads the file again; 'sluice serve --user' "
                           "and --users-file decide which users it admits");
        case known_account::unknown:
            break;
    }
    return problem(
        "logon", fmt::format("the user '{}' or the password is wrong; a server does not say which", user),
        why,
        fmt::format("on the server, as its account: sluice user list; then: sluice user add {0}, or "
                    "sluice user passwd {0}",
                    user));
}

[[nodiscard]] finding refused_share(const remote_target& target, const client_error& why) {
    const nt_status status = why.status();
    if (status == nt_status::bad_network_name or status == nt_status::bad_network_path)
        return problem("share", fmt::format("the server has no share '{}'", target.share), why,
                       fmt::format("list its shares: smbclient -L {} -p {} -U {}", target.host, target.port,
                                   shell_word(target.user)));
    if (status == nt_status::access_denied)
        return problem(
            "share", fmt::format("the user '{}' has no access to the share '{}'", target.user, target.share),
            why,
            fmt::format("add the user to the setting 'users' of the share; Samba: 'valid users = {}'",
                        target.user));
    return problem("share", fmt::format("the share '{}' cannot be used", target.share), why,
                   "correct what the status says, and run this command again");
}

[[nodiscard]] finding refused_file(const remote_target& target, const client_error& why) {
    const nt_status status = why.status();
    remote_target parent = target;
    const std::size_t slash = target.path.rfind('/');
    parent.path.resize(slash == std::string::npos ? 0 : slash);
    const std::string directory = fmt::format("smb://{}@{}", target.user, parent.text().substr(2));
    if (status == nt_status::access_denied)
        return problem("file", fmt::format("the user '{}' may not read '{}'", target.user, target.path), why,
                       "on the server, check the permissions of each directory: namei -l PATH");
    return problem("file", fmt::format("'{}' cannot be read", target.path), why,
                   fmt::format("list the directory: sluice ls smb://{}@{}/{}", target.user,
                               target.text().substr(2), ""));
}

[[nodiscard]] std::chrono::microseconds median(std::vector<std::chrono::microseconds> times) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    return *middle;
}

}  // namespace

std::vector<finding> judge_logon(const remote_target& target, const logon_facts& seen,
                                 known_account account) {
    if (seen.connection)
        return {problem("logon", "the connection for the logon failed", *seen.connection,
                        "run this command again; if it fails again, read the log of the server")};
    if (seen.logon) return {refused_logon(target, *seen.logon, account)};
    std::vector<finding> found;
    if (seen.is_logged_on)
        found.push_back({.level = severity::note,
                         .check = "logon",
                         .what = fmt::format("the user '{}' can log on", target.user),
                         .evidence = seen.is_encrypted ? "the server requires encryption" : "",
                         .remedy = {}});
    if (seen.echo) {
        found.push_back(problem("logon", "the server does not answer requests of the new session", *seen.echo,
                                "update the server, and remove proxies between it and the client"));
        return found;
    }
    if (seen.share) found.push_back(refused_share(target, *seen.share));
    if (seen.is_share_connected)
        found.push_back({.level = severity::note,
                         .check = "share",
                         .what = fmt::format("the share '{}' can be used", target.share),
                         .evidence = seen.interfaces.empty()
                                         ? "the server reports no interfaces for multichannel"
                                         : fmt::format("interfaces for multichannel: {}",
                                                       fmt::join(seen.interfaces, ", ")),
                         .remedy = {}});
    if (seen.file) found.push_back(refused_file(target, *seen.file));
    return found;
}

std::vector<finding> judge_speed(const logon_facts& seen) {
    std::vector<finding> found;
    if (not seen.echoes.empty()) {
        constexpr std::chrono::milliseconds slow{50};
        const auto usual = median(seen.echoes);
        const auto most = std::ranges::max(seen.echoes);
        finding one{
            .level = severity::note,
            .check = "latency",
            .what = fmt::format("a request takes {:.2f} ms", static_cast<double>(usual.count()) / 1e3),
            .evidence = fmt::format("median of {} ECHOs; longest {:.2f} ms", seen.echoes.size(),
                                    static_cast<double>(most.count()) / 1e3),
            .remedy = {}};
        if (usual >= slow) {
            one.level = severity::warning;
            one.remedy =
                "compare with 'ping HOST': if that is fast, the server is overloaded ('sluice status' "
                "there); else the network is slow";
        }
        found.push_back(std::move(one));
    }
    if (seen.read_bytes != 0 and seen.read_took.count() != 0) {
        const double seconds = static_cast<double>(seen.read_took.count()) / 1e6;
        found.push_back(
            {.level = severity::note,
             .check = "throughput",
             .what = fmt::format("one read at a time transfers {:.1f} MB/s",
                                 static_cast<double>(seen.read_bytes) / 1e6 / seconds),
             .evidence = fmt::format("{} bytes in {:.2f} s; programs with several requests in flight are "
                                     "faster",
                                     seen.read_bytes, seconds),
             .remedy = {}});
    }
    return found;
}

std::vector<finding> judge_open_access(const remote_target& target, const logon_facts& anonymous,
                                       const logon_facts& guest) {
    std::vector<finding> found;
    const auto add = [&](const logon_facts& seen, const char* who) {
        if (not seen.is_logged_on) return;
        finding one{.level = severity::note,
                    .check = "guest",
                    .what = fmt::format("the server accepts {} logons", who),
                    .evidence = target.share.empty() ? "no share was tried; name one to try it" : "",
                    .remedy = {}};
        if (seen.is_share_connected) {
            one.level = severity::warning;
            one.what += fmt::format(", which can use the share '{}'", target.share);
            one.evidence = "Windows 11 24H2 refuses such logons, because they cannot be signed";
            one.remedy =
                "require a user: omit --guest of sluice serve; Samba: 'guest ok = no' and 'map to guest = "
                "never'";
        } else if (seen.share) {
            one.evidence = "but not for the share: " + seen.share->message();
        }
        found.push_back(std::move(one));
    };
    add(anonymous, "anonymous");
    add(guest, "guest");
    return found;
}

}  // namespace sluice::cli::doctor
