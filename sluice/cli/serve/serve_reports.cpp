#include "sluice/cli/serve/serve_reports.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/serve/share_streams.hpp"
#include "sluice/cli/user_names.hpp"

namespace sluice::cli {

using smb::server::user_database;

// A misspelled name would only show when its user is refused.
void report_unknown_users(const serve_options& options, user_database& users, smb::server::event_log& log) {
    // A group is known: otherwise the options would have been refused.
    const auto is_unknown = [&](const std::string& name) {
        return not name.starts_with('@') and not users.find(name, {});
    };
    for (const share_options& share : options.shares) {
        std::vector<std::string> named = share.users;
        for (const auto* const list : {&share.read_only_users, &share.write_users})
            std::ranges::copy_if(*list, std::back_inserter(named), [](std::string_view name) {
                return not equal_ignoring_case(name, std::string_view("guest"));
            });
        named.insert(named.end(), share.auditors.begin(), share.auditors.end());
        for (const std::string& name : named)
            if (is_unknown(name))
                log.write(smb::server::event_severity::warning, "a share names an unknown user",
                          {{"share", share.name.empty() ? share.path : share.name},
                           {"user", name},
                           {"hint", fmt::format("check the spelling; '{} list' lists all users",
                                                user_command(options.users_file))}});
    }
    for (const user_group& group : options.groups)
        for (const std::string& name : group.members)
            if (not group.is_of_host and is_unknown(name))
                log.write(smb::server::event_severity::warning, "a group names an unknown user",
                          {{"group", group.name},
                           {"user", name},
                           {"hint", fmt::format("check the spelling; '{} list' lists all users",
                                                user_command(options.users_file))}});
    for (const std::string& name : options.users_without_groups)
        log.write(smb::server::event_severity::warning,
                  "a user was added after the groups of the host were read",
                  {{"user", name},
                   {"hint",
                    "restart the server; until then, the user is in none of them, and can only read the "
                    "shares that one of them can only read"}});
    for (const std::string& name : options.administrators)
        if (is_unknown(name))
            log.write(smb::server::event_severity::warning, "an administrator is an unknown user",
                      {{"user", name},
                       {"hint", fmt::format("check the spelling; '{} list' lists all users",
                                            user_command(options.users_file))}});
}

namespace {

// Each directory has a queue for its changes, and one for its names. Without them, it is served
// with fewer features.
void report_few_instances(const serve_options& options, smb::server::event_log& log) {
    std::ifstream file("/proc/sys/fs/inotify/max_user_instances");
    std::size_t limit = 0;
    const auto directories = static_cast<std::size_t>(std::ranges::count_if(
        options.shares, [](const share_options& each) { return each.referral.empty(); }));
    const std::size_t needed = 2 * directories;
    if (not(file >> limit) or needed <= limit) return;
    log.write(smb::server::event_severity::warning,
              "some shares may have no change notifications, and no leases of directories",
              {{"why", fmt::format("{} shares need {} inotify instances, but an account may have {}",
                                   directories, needed, limit)},
               {"hint", "raise fs.inotify.max_user_instances"}});
}

}  // namespace

void report_problems(const smb::server::smb_server& server, const serve_options& options,
                     user_database& users, const share_opener::reopened& opened,
                     smb::server::event_log& log) {
    report_unknown_users(options, users, log);
    report_stream_limits(server.context().shares, log);
    report_few_instances(options, log);
    for (const auto* const list : {&options.without_homes, &opened.without_homes})
        for (const user_without_home& each : *list)
            log.write(smb::server::event_severity::warning, "a user has no share of their own",
                      {{"user", each.user}, {"why", each.why}});
    for (const share_opener::missing_directory& each : opened.missing_snapshots)
        log.write(smb::server::event_severity::warning, "a share has no previous versions",
                  {{"share", each.share}, {"why", each.why}});
}

void report_other_servers(const share_journals& journals, smb::server::event_log& log) {
    for (const std::string& path : journals.of_others())
        log.write(smb::server::event_severity::warning, "another process has locked a shared directory",
                  {{"path", path},
                   {"hint",
                    "if it is a server with persistent handles, end one of the two; find it by FLOCK in "
                    "/proc/locks"}});
    for (const std::string& path : journals.removed())
        log.write(
            smb::server::event_severity::warning, "persistent handles of an earlier server are not restored",
            {{"path", path}, {"hint", "set continuous-availability to on to keep those of this server"}});
    for (const std::string& path : journals.kept_later())
        log.write(smb::server::event_severity::warning, "persistent handles of a later version are kept",
                  {{"path", path},
                   {"hint",
                    "a newer sluice restores them, although files may have changed in the meantime; remove "
                    "the journal in the state directory to end them"}});
}

}  // namespace sluice::cli
