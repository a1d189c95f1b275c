#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "sluice/smb/auth/authentication.hpp"
#include "sluice/smb/auth/key_derivation.hpp"
#include "sluice/smb/auth/sealing.hpp"
#include "sluice/smb/auth/used_message_ids.hpp"
#include "sluice/smb/server/core/timer_queue.hpp"
#include "sluice/smb/server/session/admitted.hpp"
#include "sluice/smb/server/session/channel.hpp"
#include "sluice/smb/server/session/negotiated.hpp"
#include "sluice/smb/server/session/tree.hpp"

namespace sluice::smb::server {

class open;

/// The user that a session acts for.
struct user_identity {
    std::string name;
    std::string domain;
    bool is_guest = false;
    bool is_anonymous = false;
};

/// The identity that an authentication has proved.
[[nodiscard]] user_identity identity_of(const auth::step_done& who);
/// Returns whether both identities mean the same account, according to `accounts`. A guest differs from a
/// user of the same name. False if either is anonymous.
[[nodiscard]] bool is_same_account(const auth::account_source& accounts, const user_identity& one,
                                   const user_identity& other) noexcept;

/// A logon: a user, the session's keys, its tree connections and opens ([MS-SMB2] 3.3.1.8).
///
/// Reached over its channels, and gone with the last established one. Invariants:
///   1. Every open in `opens` names this session, and its tree is one of `trees` or gone.
///   2. Every channel in `channels` is in its connection's table, and the other way round.
///   3. A tree in `trees` has its number there, and is not gone.
///   4. Once it is gone, it has no opens, trees and channels, and gets no more. Until then it is in the
///   table.
///   5. It has a client from the time it is valid. Its keys are made once.
/// Thread safety: `state` is atomic; the identity, which is set before that becomes valid, is read by any
/// thread that has found it valid; the rest under the server's latch.
class session {
public:
    enum class phase : std::uint8_t {
        in_progress,  ///< authentication is in progress; nothing else is served
        valid,
        expired,  ///< its lifetime is over: reauthentication precedes all but CLOSE, LOGOFF, LOCK
        gone,
    };
    /// Atomic: any thread reads it.
    class atomic_phase {
    public:
        // acquire and release: a thread that finds a phase sees what was set before it.
        operator phase() const noexcept { return value_.load(std::memory_order_acquire); }
        atomic_phase& operator=(phase fresh) noexcept {
            value_.store(fresh, std::memory_order_release);
            return *this;
        }

    private:
        std::atomic<phase> value_{phase::in_progress};
    };

    /// `by`: what its first connection has agreed on, and every further one must agree on alike. `memory`,
    /// for its table of opens, outlives it.
    session(std::uint64_t number, negotiated by, std::pmr::memory_resource& memory) noexcept
        : id(number), agreed(std::move(by)), opens(&memory) {}
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    const std::uint64_t id;
    const negotiated agreed;
    atomic_phase state;
    std::optional<timer_queue::entry> expiry;  // when a valid session expires
    std::vector<channel*> channels;            // in the order they came; their connections own them
    user_identity user;                        // never changes once the session is established
    std::optional<auth::nt_hash> proved;       // hash of the user's password; none: anonymous
    clock_source::utc_time since{};            // when it was begun
    admitted_session admitted;                 // declared before all that counts for its client

    /// Null for guests and the anonymous: they have no key.
    std::optional<auth::secret_bytes<16>> signing_key;  // that of the first channel, which vouches for others
    std::optional<auth::sealing_key> sealing;           // for what we send; each channel has a sealer of it
    std::optional<auth::cipher_key> opening;            // for what we receive
    std::optional<auth::secret_bytes<16>> application_key;
    /// With AES-GMAC: message ids below those that the first channel signs with that key, for the replies to
    /// SESSION_SETUPs on other connections that bind them.
    auth::used_message_ids binding_ids{{.first = 0, .end = 0}};
    bool requires_signing = false;
    bool requires_encryption = false;

    std::map<std::uint32_t, std::shared_ptr<tree>> trees;
    std::pmr::map<std::uint64_t, std::shared_ptr<open>> opens;  // by the volatile part of their id
    std::uint32_t next_tree_id = 1;

    /// Gives one of its channels the ciphers of the session's keys, if the session has keys. Errors:
    /// those of channel::make_ciphers().
    [[nodiscard]] result<void> make_ciphers(channel& of, secret_random_source& random) noexcept;
    /// Returns the first that is established; null if the session has ended, or is not established
    /// yet.
    [[nodiscard]] channel* first_channel() const noexcept;
};

}  // namespace sluice::smb::server
