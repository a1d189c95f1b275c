#pragma once

#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/session/negotiated.hpp"

// Further channels of a session: SESSION_SETUP with the binding flag, on another connection of the
// same client ([MS-SMB2] 3.3.5.5, 3.3.5.5.2).

namespace sluice::smb::server {

/// Returns the input of the key derivation for a session or channel of 3.x. `key` outlives the
/// result.
[[nodiscard]] auth::session_key_material key_material(const negotiated& agreed, const auth::session_key& key,
                                                      const auth::preauth_integrity& preauth) noexcept;

/// If the request binds a session of another connection, checks whether the session's key has
/// signed it. If so, the reply is signed with that key, unless it has the key's channel's own
/// ([MS-SMB2] 3.3.4.1.1, 3.3.5.2.4). With AES-GMAC find_or_begin_binding() does that, and only if
/// no reply of that message id was signed with the key before: the request may be a copy. No other
/// request of a session that this connection does not have is answered under the session's key.
void prove_session_key(request& r);

/// After prove_session_key(): finds the channel that a request continues to bind, or begins one; it
/// becomes the request's. The session's key must have signed the request. Errors, in the order of
/// the checks: USER_SESSION_DELETED if there is no such session; REQUEST_OUT_OF_SEQUENCE if it
/// signs with AES-GMAC and the connection does not, NOT_SUPPORTED the other way round;
/// REQUEST_NOT_ACCEPTED before SMB 3.0; INVALID_PARAMETER for another dialect or cipher;
/// USER_SESSION_DELETED for another client; INVALID_PARAMETER without a signature;
/// REQUEST_NOT_ACCEPTED while the session is being made; NETWORK_SESSION_EXPIRED; NOT_SUPPORTED for
/// guests and the anonymous; REQUEST_NOT_ACCEPTED where it is bound already; ACCESS_DENIED for a
/// wrong signature; INSUFFICIENT_RESOURCES beyond limits::channels_per_session_max;
/// REQUEST_OUT_OF_SEQUENCE if it signs with AES-GMAC and a binding has had that message id.
[[nodiscard]] wire::nt_status find_or_begin_binding(request& r);

/// The client has been authenticated: gives the channel its keys, and it may be used. Errors:
/// ACCESS_DENIED for another user than the session's, and for an anonymous one;
/// INSUFFICIENT_RESOURCES.
[[nodiscard]] wire::nt_status bind(request& r, const auth::step_done& who);

}  // namespace sluice::smb::server
