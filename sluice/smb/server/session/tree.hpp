#pragma once

#include <cstdint>
#include <memory>

#include "sluice/smb/server/session/client_quotas.hpp"
#include "sluice/smb/server/session/default_rights.hpp"
#include "sluice/smb/server/session/share.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

namespace sluice::smb::server {

/// A session's connection to a share ([MS-SMB2] 3.3.1.9).
///
/// Immutable once the session lists the tree, except `default_rights`, which is a monitor:
/// file-system calls read it on any thread.
struct tree {
    std::uint32_t id = 0;
    std::shared_ptr<share> target;
    // The most that an open on it can be granted.
    wire::access_mask access_max = wire::access_mask::none;
    bool audits = false;  // its user may read and change audit lists
    bool requires_encryption = false;
    quota_hold counted;

    /// The share's volume with the rights of the session's account, when the server impersonates.
    std::unique_ptr<vfs::volume> impersonated;

    default_rights_cache default_rights;

    /// Returns the volume that requests on this tree use. Only if its share has one.
    [[nodiscard]] vfs::volume& volume() const noexcept {
        return impersonated != nullptr ? *impersonated : target->volume();
    }
};

}  // namespace sluice::smb::server
