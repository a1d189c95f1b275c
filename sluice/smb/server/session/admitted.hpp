#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/smb/server/core/eviction_order.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"

namespace sluice::smb::server {

struct admitted_connection;
class connection;
class connection_handle;

/// Connections without a session, and sessions in progress, in the order in which
/// the server drops them.
using connection_order = eviction_order<client_address, admitted_connection*>;
using session_order = eviction_order<client_address, std::uint64_t>;

/// The state of the admission that belongs to a connection. Part of the monitor `admission`, whose
/// mutex guards it, except where a member says otherwise. Lifetime: from enter() until leave();
/// every session that was begun on it has ended, or is established, before leave().
struct admitted_connection {
    admitted_connection(connection* of, const client_address& peer) : owner(of), from(peer) {}

    connection* const owner;
    const client_address from;
    std::shared_ptr<connection_handle> handle;     // set before enter(), and then immutable
    std::optional<connection_order::entry> waits;  // for its first session
    quota_hold counted;                            // once it has had one; the home loop's
    std::size_t sessions_in_progress = 0;
    bool has_had_session = false;  // the home loop's
};

/// The state of the admission that belongs to a session.
/// Part of the monitor `admission`, whose mutex guards it, except for the client: that is set once,
/// before the phase of the session becomes valid, and then immutable.
struct admitted_session {
    client_reference client;  // null while the session is in progress
    std::optional<session_order::entry> in_progress;
    admitted_connection* begun_on = nullptr;  // while in progress
    quota_hold counted;
};

}  // namespace sluice::smb::server
