#pragma once

#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/server/session/tree.hpp"

namespace sluice::smb::server {

/// On whose behalf, and through which share, a file is accessed. Thread safety: under the server's latch.
struct accessor {
    const server::session& session;
    server::tree& tree;
};

}  // namespace sluice::smb::server
