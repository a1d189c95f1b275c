#pragma once

#include "sluice/smb/server/negotiated.hpp"
#include "sluice/smb/server/request.hpp"

// How a session gets further channels: SESSION_SETUP with the binding flag, on another connection of the same
// client ([MS-SMB2] 3.3.5.5, 3.3.5.5.2).

namespace sluice::smb::server {

/// What the keys of a session or channel of 3.x are made of. `key` outlives the result.
[[nodiscard]] auth::session_key_material key_material(const negotiated& agreed, const auth::session_key& key,
                                                      const auth::preauth_integrity& preauth) noexcept;

/// Finds the channel that a request goes on binding, or begins one; it becomes the request's. The session's
/// key must have signed the request.
/// Errors: REQUEST_NOT_ACCEPTED before SMB 3.0, while the session is being made, and where it is bound
/// already; USER_SESSION_DELETED if there is no such session, or it is another client's; INVALID_PARAMETER
/// for another dialect or cipher, or without a signature; REQUEST_OUT_OF_SEQUENCE for another signing
/// algorithm; NETWORK_SESSION_EXPIRED; NOT_SUPPORTED for guests and the anonymous; ACCESS_DENIED for a wrong
/// signature; INSUFFICIENT_RESOURCES beyond limits::channels_per_session_max.
[[nodiscard]] wire::nt_status find_or_begin_binding(request& r);

/// The client has proved who it is: gives the channel its keys, and it may be used.
/// Errors: ACCESS_DENIED if it is not the session's user, and nobody never is; INSUFFICIENT_RESOURCES.
[[nodiscard]] wire::nt_status bind(request& r, const auth::step_done& who);

}  // namespace sluice::smb::server
