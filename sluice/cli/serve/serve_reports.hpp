#pragma once

#include <vector>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/cli/serve/serve_shares.hpp"
#include "sluice/cli/serve/share_journals.hpp"
#include "sluice/smb/server/report/event_log.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli {

/// Logs the users that shares name and that do not exist. Allocates, Thread safety: as below.
void report_unknown_users(const serve_options& options, smb::server::user_database& users,
                          smb::server::event_log& log);
/// Logs the parts of the configuration that have less effect than they seem to have: users that do
/// not exist, streams that a share cannot have, missing directories of previous versions.
/// Allocates: the lines. Thread safety: the first loop's thread.
void report_problems(const smb::server::smb_server& server, const serve_options& options,
                     smb::server::user_database& users,
                     const std::vector<share_opener::missing_directory>& without_snapshots,
                     smb::server::event_log& log);
/// Logs the directories whose persistent handles another server has, or had.
/// Allocates, Thread safety: as above.
void report_other_servers(const share_journals& journals, smb::server::event_log& log);

}  // namespace sluice::cli
