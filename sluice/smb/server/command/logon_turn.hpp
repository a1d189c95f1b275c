#pragma once

#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/session/logon_throttle.hpp"

namespace sluice::smb::server {

/// Waits until the server may check the proof in a SESSION_SETUP that continues an authentication
/// (logon_throttle.hpp). Await it before reading anything else of the request, whose session may
/// end first. Requests signed with the key of an established session do not wait, except after a
/// wrong proof in any session of its user: their sender has logged on.
/// Errors: REQUEST_NOT_ACCEPTED if too many attempts of the address, or of all addresses, wait; a
/// session in progress ends then. USER_SESSION_DELETED if the session, the channel or the
/// connection ended while it waited, or another request has established the session.
/// `turn`: gets the admission; exists until the proof is checked, and counted if it is wrong.
/// Suspends.
[[nodiscard]] io::task<wire::nt_status> wait_for_logon_turn(request& r,
                                                            logon_throttle::admission& turn) noexcept;

}  // namespace sluice::smb::server
