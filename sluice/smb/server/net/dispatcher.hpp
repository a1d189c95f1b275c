#pragma once

#include <cstdint>
#include <memory>

#include "sluice/io/task/task.hpp"
#include "sluice/smb/wire/message/header.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

class channel;
class lease;
class open;
class request;
class server_context;
class session;

/// Serves a command: decodes and authorises it, carries it out, and writes the reply. Returns the
/// status of the reply, which has a body if the handler has begun one, and otherwise an error body.
using command_handler = io::task<wire::nt_status> (*)(request& r);

/// The conditions under which a command is served.
struct command_rule {
    command_handler serve = nullptr;
    bool needs_session = true;
    bool needs_tree = true;
    // The session must be authenticated again first, except for these.
    bool allowed_when_expired = false;
};

/// The functions of later modules that earlier ones call: a connection does not know the commands,
/// and the end of an open and the break of a lease can cause each other. Immutable.
struct dispatcher {
    /// Returns the rule of a command; null for an invalid code. CANCEL has none, because it has no
    /// reply.
    const command_rule* (*rule_of)(wire::command code) noexcept;
    /// See prove_session_key() (command/binding.hpp).
    void (*prove_session_key)(request& r);
    /// See lose_channel() and end_channel() (operation/session_life.hpp).
    void (*lose_channel)(server_context& host, channel& losing) noexcept;
    void (*end_channel)(server_context& host, channel& ending) noexcept;
    /// See end_open_of() (operation/open_closer.hpp).
    bool (*end_open_of)(server_context& host, open& one, const session* of) noexcept;
    /// See end_unsent_grant() (operation/lease_breaks.hpp).
    void (*end_unsent_grant)(server_context& host, const std::shared_ptr<lease>& of) noexcept;
    /// See examine_directories_soon() (operation/directory_caching.hpp).
    void (*examine_directories_soon)(server_context& host) noexcept;
    /// See break_directory_soon() (operation/directory_caching.hpp).
    void (*break_directory_soon)(server_context& host, const vfs::file_key& directory,
                                 const open* by) noexcept;
};

}  // namespace sluice::smb::server
