#pragma once

#include <cstdint>
#include <memory>

#include "sluice/smb/server/share.hpp"
#include "sluice/smb/wire/access_mask.hpp"

namespace sluice::smb::server {

/// A session's connection to a share ([MS-SMB2] 3.3.1.9). Thread safety: under the server's latch.
struct tree {
    std::uint32_t id = 0;
    std::shared_ptr<share> target;
    wire::access_mask access_max = wire::access_mask::none;  // what opens on it can be granted at most
    bool requires_encryption = false;
    bool is_gone = false;  // disconnected; requests under way still hold it

    /// The share's volume with the rights of the session's account, when the server impersonates.
    std::unique_ptr<vfs::volume> impersonated;

    /// What requests on this tree work with. Not of IPC$.
    [[nodiscard]] vfs::volume& volume() const noexcept {
        return impersonated != nullptr ? *impersonated : target->volume();
    }
};

}  // namespace sluice::smb::server
