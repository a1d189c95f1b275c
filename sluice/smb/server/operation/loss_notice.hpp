#pragma once

#include "sluice/smb/server/net/connection.hpp"

namespace sluice::smb::server {

/// Waits until the other loops with connections of this one's client have noticed which of them are
/// lost: the opens of a client that has disconnected end before it logs on again. Suspends, for
/// each of those loops at most a quarter of a second and its turns.
[[nodiscard]] io::task<void> notice_losses(server_context& host, const connection& of) noexcept;

}  // namespace sluice::smb::server
