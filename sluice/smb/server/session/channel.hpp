#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/base/random.hpp"
#include "sluice/smb/auth/negotiator.hpp"
#include "sluice/smb/auth/preauth_integrity.hpp"
#include "sluice/smb/auth/sealing.hpp"
#include "sluice/smb/auth/signing.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"

namespace sluice::smb::server {

class connection;
class session;

/// One of the connections of a session's client, with the state that the session has for it alone
/// ([MS-SMB2] 3.3.1.14).
///
/// The first comes with the session, the others are bound to it. It is in the tables of both its session and
/// its connection from the first SESSION_SETUP that names them together, and leaves both at once, in
/// end_channel() (operation/session_life.hpp); a pending request holds it until its reply is signed.
/// Thread safety: under the server's latch.
class channel : public std::enable_shared_from_this<channel> {
public:
    channel(std::shared_ptr<server::session> of, server::connection& on) noexcept
        : session(std::move(of)), connection(&on) {}
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;

    const std::shared_ptr<server::session> session;
    server::connection* connection;  // null once it has ended
    /// False until the client has authenticated on this connection as well: nothing is served on it
    /// before.
    bool is_established = false;

    quota_hold counted;  // once it is established

    /// Set during authentication: the first, or a later one.
    std::unique_ptr<auth::negotiator> negotiator;
    auth::preauth_integrity preauth;

    /// Its own signing key, which no other connection uses. Null until it is established, and for guests and
    /// the anonymous: they have none.
    std::shared_ptr<auth::signer> signer;
    std::optional<auth::sealer> sealer;
    std::optional<auth::opener> opener;

    /// Makes the sealer and the opener of a session's keys. Errors: those of sealing_key::make_sealer and
    /// opener::create; then the channel is as before.
    [[nodiscard]] result<void> make_ciphers(auth::sealing_key& sealing, const auth::cipher_key& opening,
                                            secret_random_source& random) noexcept;
};

}  // namespace sluice::smb::server
