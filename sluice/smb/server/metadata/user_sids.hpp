#pragma once

#include <vector>

#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/wire/security/sid.hpp"
#include "sluice/vfs/volume.hpp"

// Who the users of a session are to security descriptors.

namespace sluice::smb::server {

/// The SID of a user: S-1-5-21-a-b-c-d, made of nothing but the name, without regard to case, so that
/// descriptors mean the same person after a restart and on another server. Guests are S-1-5-32-546, who did
/// not log on at all is S-1-5-7. Complexity: linear in the name.
[[nodiscard]] wire::sid sid_of(const user_identity& user);

/// All SIDs a user is known by on a volume, [MS-DTYP] 2.5.2: their own, Everyone, Network; for who logged on
/// also Authenticated Users, and the host's user and groups the volume acts as. Allocates: the list.
[[nodiscard]] std::vector<wire::sid> token_of(const user_identity& user,
                                              const std::optional<vfs::acting_user>& acts_as);

/// Whether a user has proved to be one.
[[nodiscard]] inline bool is_known(const user_identity& user) noexcept {
    return not user.is_guest and not user.is_anonymous;
}

}  // namespace sluice::smb::server
