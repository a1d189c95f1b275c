#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "sluice/smb/server/session/client_quotas.hpp"
#include "sluice/smb/server/session/share.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

namespace sluice::smb::server {

/// A session's connection to a share ([MS-SMB2] 3.3.1.9). Thread safety: under the server's latch.
struct tree {
    std::uint32_t id = 0;
    std::shared_ptr<share> target;
    wire::access_mask access_max = wire::access_mask::none;  // what opens on it can be granted at most
    bool requires_encryption = false;
    quota_hold counted;
    bool is_gone = false;  // disconnected; requests under way still hold it

    /// The share's volume with the rights of the session's account, when the server impersonates.
    std::unique_ptr<vfs::volume> impersonated;

    /// What files that nobody has given a descriptor grant the session's user: asked at each open, and the
    /// same for nearly all of them. The last answer, and of what.
    struct default_rights {
        vfs::node_kind kind = vfs::node_kind::file;
        std::uint32_t user_id = 0;
        std::uint32_t group_id = 0;
        std::uint16_t permission_bits = 0;
        bool is_anonymous = false;

        [[nodiscard]] friend bool operator==(const default_rights&, const default_rights&) noexcept = default;
    };
    std::optional<std::pair<default_rights, wire::access_mask>> known_rights;

    /// What requests on this tree work with. Not of IPC$.
    [[nodiscard]] vfs::volume& volume() const noexcept {
        return impersonated != nullptr ? *impersonated : target->volume();
    }
};

}  // namespace sluice::smb::server
