#pragma once

#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/server/session/tree.hpp"

namespace sluice::smb::server {

/// On whose behalf, and through which share, a file is accessed. Thread safety: any thread, while session and
/// tree exist; what it uses of both does not change.
struct accessor {
    const user_identity& user;
    server::tree& tree;
};

}  // namespace sluice::smb::server
