#pragma once

#include "sluice/smb/server/net/request.hpp"

namespace sluice::smb::server {

/// Returns whether the request is signed with that key. The caller holds the latch. It is released while a
/// long message is checked, so check again what you have looked at before.
[[nodiscard]] bool has_signed(auth::signer& by, const request& r) noexcept;

}  // namespace sluice::smb::server
