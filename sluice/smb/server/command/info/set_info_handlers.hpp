#pragma once

#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/wire/file/set_info.hpp"

// The changes of a file by SET_INFO that wait for no other client: one function for each class of
// [MS-FSCC] 2.4. The open is of a file, directory or stream; change_file() checks the access that a
// class needs.

namespace sluice::smb::server {

/// Carries a class out. Errors: INVALID_INFO_CLASS for one that cannot be set here,
/// ACCESS_DENIED without the right it needs, INFO_LENGTH_MISMATCH for too few bytes,
/// INVALID_PARAMETER, those of the file system.
[[nodiscard]] io::task<wire::nt_status> change_file(request& r, std::shared_ptr<open> one,
                                                    const wire::set_info_args& args) noexcept;

/// Whether a file may be removed by an open with the right to. Touches only the node. Errors:
/// CANNOT_DELETE (it is read-only, and that is not to be ignored), DIRECTORY_NOT_EMPTY. Blocks:
/// for the file system.
[[nodiscard]] wire::nt_status may_remove(vfs::node& node, bool ignores_read_only) noexcept;

/// Stores the parts of a security descriptor that are given. Errors: ACCESS_DENIED,
/// INVALID_SECURITY_DESCR, and those of the file system.
[[nodiscard]] io::task<wire::nt_status> change_security(request& r, open& one,
                                                        const wire::set_info_args& args) noexcept;

}  // namespace sluice::smb::server
