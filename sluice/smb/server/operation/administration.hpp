#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "sluice/smb/server/open/open.hpp"
#include "sluice/smb/server/session/channel.hpp"
#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/wire/nt_status.hpp"

// The actions of administrators on sessions and opens, for the RPC services ([MS-SRVS] 3.1.4.6,
// 3.1.4.4) and for the web page, and the names that their reports use.

namespace sluice::smb::server {

class server_context;

/// Returns the address of the client of a channel, without the brackets of IPv6.
[[nodiscard]] std::string address_of(const channel& way);
/// Returns the address that the client has logged on from, or one that it still uses; else nothing.
[[nodiscard]] std::string client_address_of(const session& one);
/// Returns the user of an open; for one that is kept for its client, that of the lost session.
[[nodiscard]] std::string owner_of(const open& one);
/// Returns the path of an open file as of a drive on which the share is a directory:
/// "C:\share\file". The caller holds no mutex. Blocks: for the file system, which knows the name.
[[nodiscard]] std::string drive_path_of(const open& one);

struct ended_session {
    std::size_t opens = 0;   // that it had
    bool has_ended = false;  // false: it had ended before
};
/// Ends a session that is established, and all its opens: they are not kept as durable, because the
/// client would have them back at once. Logs the action with `by`, the name of the administrator.
/// Blocks: as end_session().
ended_session end_session_by(server_context& host, session& ending, std::string_view by) noexcept;

/// Ends an open that is not that of a pipe, and logs the action. Returns the status of end_open().
/// Blocks: as end_open().
wire::nt_status close_file_by(server_context& host, open& ending, std::string_view by) noexcept;

}  // namespace sluice::smb::server
