#pragma once

#include "sluice/smb/server/net/request.hpp"

namespace sluice::smb::server {

/// Returns whether the request is signed with that key.
[[nodiscard]] bool has_signed(auth::signer& by, const request& r) noexcept;

}  // namespace sluice::smb::server
