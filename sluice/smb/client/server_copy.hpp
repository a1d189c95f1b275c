#pragma once

#include "sluice/smb/client/remote_file.hpp"

namespace sluice::smb::client {

/// Copies the bytes up to `size_bytes` between two files of one session on the server
/// (FSCTL_SRV_COPYCHUNK_WRITE, [MS-SMB2] 3.3.5.15.6), without sending them over the network.
///
/// Errors: `status`, such as `not_supported`, `invalid_device_request` or `object_name_not_found`
/// for a server that cannot copy between these files; `protocol`. Allocates: a request.
/// Suspends.
[[nodiscard]] io::task<outcome<void>> copy_on_server(remote_file& from, remote_file& to,
                                                     std::uint64_t size_bytes) noexcept;

}  // namespace sluice::smb::client
