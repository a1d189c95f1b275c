#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/base/random.hpp"
#include "sluice/smb/auth/cipher/sealing.hpp"
#include "sluice/smb/auth/cipher/signing.hpp"
#include "sluice/smb/auth/logon/negotiator.hpp"
#include "sluice/smb/auth/preauth_integrity.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"
#include "sluice/smb/server/session/host_rules.hpp"

namespace sluice::smb::server {

class connection_handle;
class session;

/// One of the connections of a session's client, with the state that the session has for it alone
/// ([MS-SMB2] 3.3.1.14).
///
/// The first comes with the session, the others are bound to it. It is in the list of its session
/// and in the table of its connection from the first SESSION_SETUP that names them together. When
/// it ends, it leaves the session at once, and the connection when its loop has learned of that; a
/// pending request holds it until its reply is signed. Loop-owned, by the loop of its connection,
/// except for what never changes or is atomic. The sealer and the signer are set before it is
/// established, and then used by that loop only; any thread asks whether there is a sealer.
class channel : public std::enable_shared_from_this<channel> {
public:
    /// `address` is that of the client.
    channel(std::shared_ptr<server::session> of, std::shared_ptr<connection_handle> on,
            const ip_bytes& address = {}) noexcept
        : session(std::move(of)), connection(std::move(on)), from(address) {}
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;

    const std::shared_ptr<server::session> session;
    const std::shared_ptr<connection_handle> connection;
    const ip_bytes from;

    /// False until the client has authenticated on this connection as well: nothing is served on it
    /// before; and again once the connection is lost. The session changes it, under its mutex.
    // acquire: the members set before; pairs with the release below.
    [[nodiscard]] bool is_established() const noexcept {
        return is_established_.load(std::memory_order_acquire);
    }
    void set_established(bool now) noexcept { is_established_.store(now, std::memory_order_release); }
    /// Whether it has left its session, which changes this under its mutex.
    [[nodiscard]] bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }
    void end() noexcept {
        set_established(false);
        has_ended_.store(true, std::memory_order_release);
    }

    quota_hold counted;  // once it is established

    /// Set during authentication: the first, or a later one.
    std::unique_ptr<auth::negotiator> negotiator;
    auth::preauth_integrity preauth;

    /// Its own signing key, which no other connection uses. Null until it is established, and for
    /// guests and the anonymous: they have none.
    std::shared_ptr<auth::signer> signer;
    std::optional<auth::sealer> sealer;
    std::optional<auth::opener> opener;

    /// Makes the sealer and the opener of a session's keys. Errors: those of
    /// sealing_key::make_sealer and opener::create; then the channel is as before.
    [[nodiscard]] result<void> make_ciphers(auth::sealing_key& encryption_key,
                                            const auth::cipher_key& decryption_key,
                                            secret_random_source& random) noexcept;

private:
    std::atomic<bool> is_established_{false};
    std::atomic<bool> has_ended_{false};
};

}  // namespace sluice::smb::server
