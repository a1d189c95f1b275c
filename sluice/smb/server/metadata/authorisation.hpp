#pragma once

#include <vector>

#include "sluice/smb/server/report/refusal_log.hpp"
#include "sluice/smb/server/session/accessor.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"

// The rights of users to a file ([MS-FSA] 2.1.5.1.2.1). The share sets the bounds. Within them the
// file's stored descriptor decides, or, if none was ever stored, default_security(). The host may
// still refuse afterwards.

namespace sluice::smb::server {

/// Returns the descriptor in force for a file: the stored one, or the default. One that cannot be
/// read grants rights to the owner only. Blocks: for the file system. Allocates: the lists.
[[nodiscard]] wire::security_descriptor security_of(const accessor& by, vfs::node& file);

/// Returns the rights that the user of a request has to a file: those that its descriptor grants,
/// within those that the share grants. A user that may remove entries from a directory may remove
/// the file, and one that may list it may see the file's attributes, whatever the file's own
/// descriptor says. Blocks: for the file system.
[[nodiscard]] wire::access_mask rights_to(const accessor& by, vfs::node& file) noexcept;
/// The same, with a status that the caller has just requested.
[[nodiscard]] wire::access_mask rights_to(const accessor& by, vfs::node& file,
                                          const vfs::metadata& status) noexcept;

/// Returns whether access-based enumeration shows a listed file to the user of a request: whether
/// its own descriptor grants all of FILE_GENERIC_READ, without the rights that its directory brings
/// ([MS-SMB2] 3.3.5.18). `stored` is the outcome of directory_listing::security. A file whose
/// descriptor cannot be read is not shown. Blocks: nothing.
[[nodiscard]] bool is_shown_to(const accessor& by, const vfs::metadata& status,
                               const result<std::vector<std::byte>>& stored) noexcept;

/// Reports to the administrator which rule denies `wanted`: the share's, or the file's.
void explain_refusal(refusal_log& log, const accessor& by, std::string_view path, wire::access_mask wanted);

/// Returns the descriptor that a new file or directory begins with: `given` by the client, the rest
/// inherited from the stored descriptor of `directory` (wire::descriptor_of_new). Returns
/// std::nullopt, for the default that follows the mode, if there is neither. Errors: those of the
/// file system. Blocks: for it.
[[nodiscard]] result<std::optional<wire::security_descriptor>> security_for_new(
    const accessor& by, const vfs::found_node& directory, bool makes_directory,
    const std::optional<wire::security_descriptor>& given);

/// Stores a descriptor. Errors: INVALID_SECURITY_DESCR for one that is too long; those of the file
/// system. Blocks: for it.
[[nodiscard]] wire::nt_status store_security(vfs::node& file, const wire::security_descriptor& descriptor);

}  // namespace sluice::smb::server
