#pragma once

#include "sluice/smb/server/report/refusal_log.hpp"
#include "sluice/smb/server/session/accessor.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"

// Who may do what to a file ([MS-FSA] 2.1.5.1.2.1). The share sets the bounds; within them the file's stored
// descriptor decides, or, where none was ever stored, default_security(); behind both stands the host, which
// may still refuse.

namespace sluice::smb::server {

/// The descriptor in force for a file: the stored one, or the default. One that cannot be read is one that
/// gives nothing to anybody but its owner. Blocks: for the file system. Allocates: the lists.
[[nodiscard]] wire::security_descriptor security_of(const accessor& by, vfs::node& file);

/// The rights the user of a request has to a file: what its descriptor grants, within what the share grants.
/// Who may remove things from a directory may remove the file, and who may list it may see the file's
/// attributes, whatever the file itself says. Blocks: for the file system.
[[nodiscard]] wire::access_mask rights_to(const accessor& by, vfs::node& file) noexcept;
/// The same, by a status asked for just now.
[[nodiscard]] wire::access_mask rights_to(const accessor& by, vfs::node& file,
                                          const vfs::metadata& status) noexcept;

/// Which rule denies `wanted`: the share's, or the file's; told to the administrator.
void explain_refusal(refusal_log& log, const accessor& by, std::string_view path, wire::access_mask wanted);

/// The descriptor a new file begins with: `given` by the client, the rest inherited from the descriptor that
/// `directory` has stored. Nothing to store, and so the default, if neither says anything. Errors: those of
/// the file system. Blocks: for it.
[[nodiscard]] result<std::optional<wire::security_descriptor>> security_for_new(
    const accessor& by, const vfs::found_node& directory, const vfs::node& made,
    const std::optional<wire::security_descriptor>& given);

/// Stores a descriptor. Errors: EINVAL for one that cannot be encoded; those of the file system.
[[nodiscard]] result<void> store_security(vfs::node& file, const wire::security_descriptor& descriptor);

}  // namespace sluice::smb::server
