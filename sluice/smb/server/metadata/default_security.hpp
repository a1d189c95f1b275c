#pragma once

#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/wire/info_type.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"
#include "sluice/vfs/volume.hpp"

// Security descriptors that no client has written: for files of the host, and for new files in a
// directory.

namespace sluice::smb::server {

/// Returns the descriptor of a file without a stored one, for `user`. A file of the Unix user that
/// the volume acts as (any file, if it does not act as a particular one) belongs to the user that
/// has logged on, with full control. For a file of another Unix user, and for every file of a
/// guest, the file's mode decides. Allocates: the list.
[[nodiscard]] wire::security_descriptor default_security(const vfs::metadata& file, const user_identity& user,
                                                         const std::optional<vfs::acting_user>& acts_as);

/// The user that creates a file.
struct file_creator {
    wire::sid owner;
    wire::sid group;
};

/// Returns the entries that a new file or directory inherits from its directory's stored
/// descriptor, [MS-DTYP] 2.5.3.4: those meant for it, with the creator in place of "creator"; if
/// there are none, full control for the creator and the system. Allocates: the list.
[[nodiscard]] wire::security_descriptor inherited_security(const wire::security_descriptor& directory,
                                                           const file_creator& creator, bool makes_directory);

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
