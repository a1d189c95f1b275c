#pragma once

#include <cstdint>
#include <optional>

#include "sluice/smb/server/core/eviction_order.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"

namespace sluice::smb::server {

struct admitted_connection;
class connection;

/// Connections without a session, and sessions in progress, in the order in which the server drops them.
using connection_order = eviction_order<client_address, admitted_connection*>;
using session_order = eviction_order<client_address, std::uint64_t>;

/// The state of the admission that belongs to a connection. Thread safety: under the server's latch.
struct admitted_connection {
    admitted_connection(connection* of, const client_address& peer) : owner(of), from(peer) {}

    connection* owner;
    client_address from;
    std::optional<connection_order::entry> waits;  // for its first session
    quota_hold counted;                            // once it has had one
    std::size_t sessions_in_progress = 0;
    bool has_had_session = false;  // only the home loop reads it; written under the latch
};

/// The state of the admission that belongs to a session. Thread safety: under the server's latch.
struct admitted_session {
    client_reference client;  // null while the session is in progress
    std::optional<session_order::entry> in_progress;
    admitted_connection* begun_on = nullptr;  // while in progress
    quota_hold counted;
};

}  // namespace sluice::smb::server
