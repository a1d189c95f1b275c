#pragma once

#include <expected>
#include <string>
#include <vector>

#include "sluice/smb/server/session/accessor.hpp"
#include "sluice/vfs/volume.hpp"

// Symbolic links that a CREATE cannot follow: the client does ([MS-SMB2] 2.2.2.2.1).

namespace sluice::smb::server {

/// A link with a missing target, at the end of the first `path_bytes` of a path.
struct stopping_link {
    std::size_t path_bytes = 0;
    std::string target;  // with slashes; inside the share
};

/// Finds the first component of `path` that is such a link. Only links that the client may read
/// count, whose target is in the share, also when the client applies it to the path as text.
/// Errors: OBJECT_NAME_NOT_FOUND if there is none. A file-system call: touches the volume only, and
/// blocks for it.
[[nodiscard]] std::expected<stopping_link, wire::nt_status> find_stopping_link(
    const accessor& by, std::string_view path, vfs::follow_links last) noexcept;

/// Returns the data of STATUS_STOPPED_ON_SYMLINK for a request with the name `utf16`, in which
/// `path` was found. Empty if the name differs from the path before the link, so that the client
/// could not apply the target, or if the target is not valid UTF-8. Allocates: the result.
[[nodiscard]] std::vector<std::byte> symlink_error_data(const stopping_link& link, std::string_view path,
                                                        bytes_view utf16);

}  // namespace sluice::smb::server
