#include "sluice/smb/wire/security/access_check.hpp"

#include <algorithm>

namespace sluice::smb::wire {
namespace {

bool holds(std::span<const sid> token, const sid& who) noexcept {
    return std::ranges::find(token, who) != token.end();
}

bool concerns(const ace& entry) noexcept {
    return (entry.type == ace_type::allow or entry.denies()) and !has(entry.flags, ace_flags::inherit_only);
}

// Returns all rights that the list grants. The first entry that names a right decides it.
access_mask granted_by(const acl& list, std::span<const sid> token, bool is_owner) noexcept {
    access_mask granted = access_mask::none;
    access_mask denied = access_mask::none;
    bool owner_rights_named = false;
    for (const ace& entry : list.entries)
        owner_rights_named = owner_rights_named or (concerns(entry) and entry.who == sid_owner_rights);
    if (is_owner and !owner_rights_named) granted = access_mask::read_control | access_mask::write_dac;

    for (const ace& entry : list.entries) {
        if (!concerns(entry)) continue;
        if (!holds(token, entry.who) and !(is_owner and entry.who == sid_owner_rights)) continue;
        const access_mask rights = mapped_for_files(entry.rights);
        if (entry.type == ace_type::allow) {
            granted |= without(rights, denied);
        } else {
            denied |= without(rights, granted);
        }
    }
    return granted;
}

}  // namespace

access_decision access_check(const security_descriptor& descriptor, std::span<const sid> token,
                             access_mask desired) noexcept {
    const bool is_owner = descriptor.owner and holds(token, *descriptor.owner);
    const access_mask available =
        descriptor.dacl ? granted_by(*descriptor.dacl, token, is_owner) & file_all_access : file_all_access;
    const access_mask named = without(mapped_for_files(desired), access_mask::maximum_allowed);
    access_decision decision{.granted = named & available, .denied = without(named, available)};
    if (has(desired, access_mask::maximum_allowed)) {
        decision.granted = available;
        if (available == access_mask::none) decision.denied |= access_mask::maximum_allowed;
    }
    return decision;
}

}  // namespace sluice::smb::wire
