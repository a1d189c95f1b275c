#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/smb/server/core/fifo_lock.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"
#include "sluice/smb/server/session/default_rights.hpp"
#include "sluice/smb/server/session/past_trees.hpp"
#include "sluice/smb/server/session/share.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

namespace sluice::smb::server {

/// A session's connection to a share ([MS-SMB2] 3.3.1.9).
///
/// The tree of a connection has other trees, in which its files are as they were at some time: of
/// snapshots. Sessions do not list these.
///
/// Immutable once the session lists the tree, except `default_rights`, `snapshot_lists` and `past`,
/// which are monitors: file-system calls read the first on any thread.
struct tree {
    std::uint32_t id = 0;
    std::shared_ptr<share> target;
    // The most that an open on it can be granted.
    wire::access_mask access_max = wire::access_mask::none;
    bool audits = false;  // its user may read and change audit lists
    bool requires_encryption = false;
    quota_hold counted;

    /// The share's volume with the rights of the session's account, when the server impersonates.
    std::unique_ptr<vfs::impersonated_volume> impersonated;

    default_rights_cache default_rights;

    fifo_lock snapshot_lists;                       // held by the request that lists snapshots
    past_trees past;                                // the snapshots that are open through it
    std::optional<vfs::snapshot_time> past_time{};  // the time of its files; std::nullopt: now

    /// Returns the volume that requests on this tree use. Only if its share has one.
    [[nodiscard]] vfs::volume& volume() const noexcept {
        return impersonated != nullptr ? *impersonated : target->volume();
    }
};

}  // namespace sluice::smb::server
