#pragma once

#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/wire/info_type.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"
#include "sluice/vfs/volume.hpp"

// Security descriptors that no client has written, and those that a client reads or writes in part.

namespace sluice::smb::server {

/// Returns the descriptor of a file without a stored one, for `user`. A file of the Unix user that
/// the volume acts as (any file, if it does not act as a particular one) belongs to the user that
/// has logged on, with full control. For a file of another Unix user, and for every file of a
/// guest, the file's mode decides. Allocates: the list.
[[nodiscard]] wire::security_descriptor default_security(const vfs::metadata& file, const user_identity& user,
                                                         const std::optional<vfs::acting_user>& acts_as);

/// Returns `parts` of a descriptor, as QUERY_INFO asks for them.
[[nodiscard]] wire::security_descriptor selected(const wire::security_descriptor& from,
                                                 wire::security_information parts);

/// Returns `stored` with `parts` of `given` in their place. The flag that a list inherits by itself
/// is kept only if the writer asks for it ([MS-DTYP] 2.5.3.4.2: auto-inherit-required); the request
/// is not kept.
[[nodiscard]] wire::security_descriptor merged(const wire::security_descriptor& stored,
                                               const wire::security_descriptor& given,
                                               wire::security_information parts);

}  // namespace sluice::smb::server
