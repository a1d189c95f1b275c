#pragma once

#include <span>

#include "sluice/smb/wire/security/access_mask.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"

namespace sluice::smb::wire {

/// The result of an access check: the rights that an open gets, and the requested rights that are
/// denied. If any is denied, the complete open fails (STATUS_ACCESS_DENIED).
struct access_decision {
    access_mask granted = access_mask::none;
    access_mask denied = access_mask::none;

    [[nodiscard]] bool allowed() const noexcept { return denied == access_mask::none; }
    [[nodiscard]] friend bool operator==(const access_decision&, const access_decision&) noexcept = default;
};

/// Returns which of the `desired` rights a user has, [MS-DTYP] 2.5.3.2, for files and directories.
/// `token`: the SIDs of the user and all its groups, including sid_everyone. Generic rights, in the
/// request or in entries, are replaced by the rights they comprise. `maximum_allowed` requests all
/// available rights, in addition to those named with it, and is denied if there are none. The owner
/// may always read and change the list, unless an entry for sid_owner_rights specifies the owner's
/// rights. Conditions are not evaluated: their result is unknown, and so a conditional entry
/// denies, but does not grant ([MS-DTYP] 2.4.4.17.3). `access_system_security` comes from a
/// privilege and never from the list: it is denied here, and a caller with the privilege does not
/// request it. Complexity: O(entries · token). Allocates: nothing.
[[nodiscard]] access_decision access_check(const security_descriptor& descriptor, std::span<const sid> token,
                                           access_mask desired) noexcept;

}  // namespace sluice::smb::wire
