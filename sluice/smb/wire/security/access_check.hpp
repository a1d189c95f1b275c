#pragma once

#include <span>

#include "sluice/smb/wire/security/access_mask.hpp"
#include "sluice/smb/wire/security/security_descriptor.hpp"

namespace sluice::smb::wire {

/// What came of a check: the rights an open gets, and those asked for in vain. With any of the latter the
/// open is refused as a whole (STATUS_ACCESS_DENIED).
struct access_decision {
    access_mask granted = access_mask::none;
    access_mask denied = access_mask::none;

    [[nodiscard]] bool allowed() const noexcept { return denied == access_mask::none; }
    [[nodiscard]] friend bool operator==(const access_decision&, const access_decision&) noexcept = default;
};

/// Whether somebody may do what `desired` asks, [MS-DTYP] 2.5.3.2, for files and directories. `token`: the
/// SIDs of the user and all its groups, sid_everyone among them. Generic rights, asked for or in entries, are
/// replaced by what they stand for. `maximum_allowed` asks for whatever there is, besides the rights named
/// with it, and is denied if there is nothing. The owner may always read and change the list, unless an entry
/// for sid_owner_rights says what it may. `access_system_security` comes from a privilege and never from the
/// list: it is denied here, and the caller that has the privilege does not ask. Complexity: O(entries ·
/// token). Allocates: nothing.
[[nodiscard]] access_decision access_check(const security_descriptor& descriptor, std::span<const sid> token,
                                           access_mask desired) noexcept;

}  // namespace sluice::smb::wire
