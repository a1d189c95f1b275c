#pragma once

#include "sluice/smb/server/net/request.hpp"

namespace sluice::smb::server {

/// Returns whether the request is signed with that key. The caller holds the latch. It is released
/// while a long message is verified, so that the caller must repeat its checks.
[[nodiscard]] bool has_signed(auth::signer& by, const request& r) noexcept;

}  // namespace sluice::smb::server
