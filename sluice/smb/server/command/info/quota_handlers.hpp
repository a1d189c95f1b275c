#pragma once

#include "sluice/io/task/task.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/open/open.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/set_info.hpp"

namespace sluice::smb::server {

/// Replies with quotas of users on the volume of an open ([MS-SMB2] 3.3.5.20.4). Administrators of
/// the server see all, other users their own. Errors: NOT_SUPPORTED where there are none;
/// INVALID_PARAMETER; ACCESS_DENIED; NO_MORE_ENTRIES; BUFFER_TOO_SMALL. Suspends: for the file
/// system.
[[nodiscard]] io::task<wire::nt_status> query_quotas(request& r, open& one,
                                                     const wire::query_info_args& args) noexcept;

/// Sets quotas of users ([MS-SMB2] 3.3.5.21.4), for an administrator of the server. Errors:
/// NOT_SUPPORTED where there are none; INVALID_PARAMETER; ACCESS_DENIED; NONE_MAPPED for a user
/// without a number on the host. Suspends: for the file system.
[[nodiscard]] io::task<wire::nt_status> set_quotas(request& r, const wire::set_info_args& args) noexcept;

}  // namespace sluice::smb::server
