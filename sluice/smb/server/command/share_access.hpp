#pragma once

#include <cstdint>

#include "sluice/smb/server/session/configuration.hpp"
#include "sluice/smb/server/session/session.hpp"
#include "sluice/smb/server/session/share.hpp"

namespace sluice::smb::server {

/// The rule by which a session may not use a share.
enum class share_refusal : std::uint8_t {
    none,
    anonymous,    ///< only known users may
    not_listed,   ///< the share has a list of users, without this one
    unencrypted,  ///< the session cannot encrypt, which the share requires
};

/// Returns the rule that keeps a session from connecting to a share, or from learning where it
/// refers to. Complexity: linear in the share's users. Thread safety: any thread.
[[nodiscard]] share_refusal refusal_of(const server_configuration& rules, const session& by,
                                       const share& wanted);

}  // namespace sluice::smb::server
