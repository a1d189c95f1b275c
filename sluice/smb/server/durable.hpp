#pragma once

#include "sluice/smb/server/open.hpp"

namespace sluice::smb::server {

class smb_server;

/// Keeps a durable open when its connection is lost, for its client to come back to: takes it from its
/// session and ends it after its time ([MS-SMB2] 3.3.7.1). False if it is not durable, and then it is to be
/// ended.
[[nodiscard]] bool keep_without_client(smb_server& host, open& one) noexcept;

}  // namespace sluice::smb::server
