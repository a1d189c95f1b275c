#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/wire/security/sid.hpp"
#include "sluice/vfs/volume.hpp"

// The SIDs of a session's user in security descriptors.

namespace sluice::smb::server {

/// Returns the SID of a user: S-1-5-21-a-b-c-d, derived from the name alone, without regard to
/// case, so that descriptors mean the same person after a restart and on another server. Guests are
/// S-1-5-32-546, anonymous users S-1-5-7. Complexity: linear in the name.
[[nodiscard]] wire::sid sid_of(const user_identity& user);

/// Returns the SID of a server as the domain of its accounts: S-1-5-21-a-b-c, derived from its name
/// alone, without regard to case. Users have SIDs of other domains, which are the same on all
/// servers. Complexity: linear in the name.
[[nodiscard]] wire::sid sid_of_server(std::string_view name);

/// Returns all SIDs of a user on a volume, [MS-DTYP] 2.5.2: their own, Everyone, Network; for a
/// user that has logged on also Authenticated Users, and the host's user and groups that the volume
/// acts as. Allocates: the list.
[[nodiscard]] std::vector<wire::sid> token_of(const user_identity& user,
                                              const std::optional<vfs::acting_user>& acts_as);

/// Returns whether a user has been authenticated.
[[nodiscard]] inline bool is_known(const user_identity& user) noexcept {
    return not user.is_guest and not user.is_anonymous;
}

}  // namespace sluice::smb::server
