#pragma once

#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/wire/info_type.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"
#include "sluice/vfs/volume.hpp"

// Security descriptors that nobody has written: of files of the host, and of files made in a directory.

namespace sluice::smb::server {

/// What a file without a stored descriptor has for `user`. A file of the user the volume acts as (any file,
/// if it acts as nobody in particular) belongs to whoever has logged on, with full control; a file of
/// somebody else's, and every file to a guest, is what its mode says. Allocates: the list.
[[nodiscard]] wire::security_descriptor default_security(const vfs::metadata& file, const user_identity& user,
                                                         const std::optional<vfs::acting_user>& acts_as);

/// Who makes a new file.
struct file_creator {
    wire::sid owner;
    wire::sid group;
};

/// What a new file or directory gets of its directory's stored descriptor, [MS-DTYP] 2.5.3.4: the entries
/// meant for it, those for the creator in the creator's name; if there are none, full control for the creator
/// and the system. Allocates: the list.
[[nodiscard]] wire::security_descriptor inherited_security(const wire::security_descriptor& directory,
                                                           const file_creator& creator, bool makes_directory);

/// `parts` of a descriptor, as QUERY_INFO asks for them.
[[nodiscard]] wire::security_descriptor selected(const wire::security_descriptor& from,
                                                 wire::security_information parts);

/// `stored` with `parts` of `given` in their place. That a list inherits by itself is kept only if the writer
/// asks for it ([MS-DTYP] 2.5.3.4.2: auto-inherit-required), and the request is not kept.
[[nodiscard]] wire::security_descriptor merged(const wire::security_descriptor& stored,
                                               const wire::security_descriptor& given,
                                               wire::security_information parts);

}  // namespace sluice::smb::server
