#pragma once

#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/server/session/tree.hpp"

namespace sluice::smb::server {

/// The user and the tree connection for which a file is accessed. Thread safety: any thread, while
/// session and tree exist; the parts of both that it uses do not change.
struct accessor {
    const user_identity& user;
    server::tree& tree;
};

}  // namespace sluice::smb::server
