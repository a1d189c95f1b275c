#pragma once

#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

/// Calls `visit(name, table)` for each table that all clients of the server share. For tests that
/// find the table that an address is in.
template <class Visit>
void for_each_table(server_context& host, Visit visit) {
    visit("quotas", host.quotas);
    visit("file table", host.files);
    visit("open table", host.opens);
    visit("lease table", host.leases);
    visit("timers", host.later);
    visit("breaks", host.breaks);
    visit("replays", host.replays);
    visit("session table", host.sessions);
    visit("share list", host.shares);
}

}  // namespace sluice::smb::server
