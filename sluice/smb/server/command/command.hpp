#pragma once

#include "sluice/smb/server/net/dispatcher.hpp"

// One function and one file for each SMB2 command, in command/: decode, authorise, do, reply.

namespace sluice::smb::server {

// clang-format off
[[nodiscard]] io::task<wire::nt_status> serve_negotiate(request& r);        // [MS-SMB2] 3.3.5.4
[[nodiscard]] io::task<wire::nt_status> serve_session_setup(request& r);    // 3.3.5.5
[[nodiscard]] io::task<wire::nt_status> serve_logoff(request& r);           // 3.3.5.6
[[nodiscard]] io::task<wire::nt_status> serve_tree_connect(request& r);     // 3.3.5.7
[[nodiscard]] io::task<wire::nt_status> serve_tree_disconnect(request& r);  // 3.3.5.8
[[nodiscard]] io::task<wire::nt_status> serve_create(request& r);           // 3.3.5.9
[[nodiscard]] io::task<wire::nt_status> serve_close(request& r);            // 3.3.5.10
[[nodiscard]] io::task<wire::nt_status> serve_flush(request& r);            // 3.3.5.11
[[nodiscard]] io::task<wire::nt_status> serve_read(request& r);             // 3.3.5.12
[[nodiscard]] io::task<wire::nt_status> serve_write(request& r);            // 3.3.5.13
[[nodiscard]] io::task<wire::nt_status> serve_lock(request& r);             // 3.3.5.14
[[nodiscard]] io::task<wire::nt_status> serve_ioctl(request& r);            // 3.3.5.15
[[nodiscard]] io::task<wire::nt_status> serve_echo(request& r);             // 3.3.5.17
[[nodiscard]] io::task<wire::nt_status> serve_query_directory(request& r);  // 3.3.5.18
[[nodiscard]] io::task<wire::nt_status> serve_change_notify(request& r);    // 3.3.5.19
[[nodiscard]] io::task<wire::nt_status> serve_query_info(request& r);       // 3.3.5.20
[[nodiscard]] io::task<wire::nt_status> serve_set_info(request& r);         // 3.3.5.21
[[nodiscard]] io::task<wire::nt_status> serve_oplock_break(request& r);     // 3.3.5.22
// clang-format on

/// The rule of a command; null for a code that is none. CANCEL is not in the
/// table: it has no reply.
[[nodiscard]] const command_rule* rule_of(wire::command code) noexcept;

}  // namespace sluice::smb::server
