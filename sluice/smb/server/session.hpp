#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/smb/auth/key_derivation.hpp"
#include "sluice/smb/auth/negotiator.hpp"
#include "sluice/smb/auth/preauth_integrity.hpp"
#include "sluice/smb/auth/sealing.hpp"
#include "sluice/smb/auth/signing.hpp"
#include "sluice/smb/server/agenda.hpp"
#include "sluice/smb/server/open.hpp"
#include "sluice/smb/server/tree.hpp"

namespace sluice::smb::server {

class connection;

/// Who a session acts for.
struct user_identity {
    std::string name;
    std::string domain;
    bool is_guest = false;
    bool is_anonymous = false;
};

/// A log-on: a user, the keys it gave, what it has connected to and opened ([MS-SMB2] 3.3.1.8).
///
/// Belongs to the connection it was made on. Invariant: every open in `opens` names this session, and its
/// tree is one of `trees` or gone. Thread safety: the loop's thread.
class session {
public:
    enum class phase : std::uint8_t {
        in_progress,  ///< authentication goes on; nothing else is served
        valid,
        expired,  ///< to be authenticated again before anything but CLOSE, LOGOFF, LOCK is served
        gone,
    };

    explicit session(std::uint64_t number) noexcept : id(number) {}
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    const std::uint64_t id;
    phase state = phase::in_progress;
    std::optional<agenda::entry> expiry;  // when a valid one is to be authenticated again
    server::connection* connection = nullptr;
    user_identity user;
    clock_source::utc_time since{};  // when it was begun

    /// While authentication goes on, the first time or again.
    std::unique_ptr<auth::negotiator> negotiator;
    auth::preauth_integrity preauth;

    /// Null for guests and the anonymous: they have no key.
    std::optional<auth::signer> signer;
    std::optional<auth::sealing_key> sealing;  // for what we send; each channel has a sealer of it
    std::optional<auth::sealer> sealer;
    std::optional<auth::opener> opener;  // of what we receive
    std::optional<auth::secret_bytes<16>> application_key;
    bool requires_signing = false;
    bool requires_encryption = false;

    std::map<std::uint32_t, std::shared_ptr<tree>> trees;
    std::map<std::uint64_t, std::shared_ptr<open>> opens;  // by the volatile part of their id
    std::uint32_t next_tree_id = 1;
};

}  // namespace sluice::smb::server
