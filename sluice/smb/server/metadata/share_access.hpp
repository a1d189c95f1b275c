#pragma once

#include <cstdint>
#include <memory>

#include "sluice/smb/server/session/configuration.hpp"
#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/server/session/share.hpp"

// The rights of a session's user to a share. The rules are in docs/guide/serve.md, "Users and
// groups of a share". Thread safety: any thread that holds no mutex of a session.

namespace sluice::smb::server {

/// The rule by which a session may not use a share.
enum class share_refusal : std::uint8_t {
    none,
    anonymous,    ///< only known users may
    not_listed,   ///< the share has a list of users, without this one
    denied_host,  ///< a channel of the session comes from an address that the share denies
    unencrypted,  ///< the session cannot encrypt, which the share requires
};

/// Returns the rule that keeps a session from connecting to a share, or from learning where it
/// refers to. Complexity: linear in the session's channels times the share's networks.
[[nodiscard]] share_refusal refusal_of(const server_configuration& rules, const session& by,
                                       const share& wanted);

/// Returns whether a list of shares shows this one to a session: also if it must encrypt first.
[[nodiscard]] bool is_listed_for(const server_configuration& rules, const session& by, const share& wanted);

/// Returns the most that an open through a share can be granted a user who may connect to it.
[[nodiscard]] wire::access_mask access_max_of(const share& wanted, const user_identity& user);

/// Returns whether a user with these rights to a share may read and change audit lists: metadata of
/// files, and so not of read-only shares.
[[nodiscard]] bool may_audit(const share& wanted, wire::access_mask access_max, const user_identity& user);

/// Returns whether a tree connection grants no more than `now`, the share of its name after a
/// reload, would grant the session of `by`, and has the same rules for files.
[[nodiscard]] bool is_still_granted(const server_configuration& rules, const session& by, const tree& of,
                                    const share& now);

}  // namespace sluice::smb::server
