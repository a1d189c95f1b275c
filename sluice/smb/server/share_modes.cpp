#include "sluice/smb/server/share_modes.hpp"

#include <algorithm>

#include "sluice/smb/server/open.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::share_access;

share_access needs_of(access_mask access) noexcept {
    share_access needs = share_access::none;
    if (wire::has_any(access, access_mask::read_data | access_mask::execute)) needs |= share_access::read;
    if (wire::has_any(access, access_mask::write_data | access_mask::append_data))
        needs |= share_access::write;
    if (wire::has(access, access_mask::delete_object)) needs |= share_access::remove;
    return needs;
}

bool can_coexist(const sharing& a, const sharing& b) noexcept {
    const share_access a_needs = needs_of(a.access);
    const share_access b_needs = needs_of(b.access);
    if (a_needs == share_access::none or b_needs == share_access::none) return true;
    return wire::has(b.share, a_needs) and wire::has(a.share, b_needs);
}

bool can_join(file_state& file, const sharing& fresh) noexcept {
    return std::ranges::all_of(file.opens(), [&](const open* held) {
        return can_coexist({.access = held->access, .share = held->share_access}, fresh);
    });
}

}  // namespace sluice::smb::server
