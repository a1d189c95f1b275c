#include "sluice/smb/server/file/share_modes.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::share_access;

namespace {

constexpr std::array modes{share_access::read, share_access::write, share_access::remove};

}  // namespace

share_access needs_of(access_mask access) noexcept {
    share_access needs = share_access::none;
    if (wire::has_any(access, access_mask::read_data | access_mask::execute)) needs |= share_access::read;
    if (wire::has_any(access, access_mask::write_data | access_mask::append_data))
        needs |= share_access::write;
    if (wire::has(access, access_mask::delete_object)) needs |= share_access::remove;
    return needs;
}

bool denies_delete(const sharing& one) noexcept {
    return needs_of(one.access) != share_access::none and not wire::has(one.share, share_access::remove);
}

bool can_coexist(const sharing& a, const sharing& b) noexcept {
    const share_access a_needs = needs_of(a.access);
    const share_access b_needs = needs_of(b.access);
    if (a_needs == share_access::none or b_needs == share_access::none) return true;
    return wire::has(b.share, a_needs) and wire::has(a.share, b_needs);
}

// A change of -1, as unsigned arithmetic wraps.
void share_mode_counts::count(const sharing& one, std::uint32_t change) noexcept {
    const share_access needs = needs_of(one.access);
    if (needs == share_access::none) return;
    for (std::size_t i = 0; i != modes.size(); ++i) {
        if (wire::has(needs, modes[i])) modes_[i].needed_by += change;
        if (not wire::has(one.share, modes[i])) modes_[i].denied_by += change;
    }
}

void share_mode_counts::add(const sharing& one) noexcept {
    count(one, 1);
}

void share_mode_counts::remove(const sharing& one) noexcept {
    for (std::size_t i = 0; i != modes.size(); ++i) {
        const share_access needs = needs_of(one.access);
        if (needs == share_access::none) break;  // it was not counted
        ENSURE(not wire::has(needs, modes[i]) or modes_[i].needed_by != 0,
               "the share modes that an open needs are removed once");
        ENSURE(wire::has(one.share, modes[i]) or modes_[i].denied_by != 0,
               "the share modes that an open denies are removed once");
    }
    count(one, static_cast<std::uint32_t>(-1));
}

bool share_mode_counts::can_join(const sharing& fresh) const noexcept {
    const share_access needs = needs_of(fresh.access);
    if (needs == share_access::none) return true;
    for (std::size_t i = 0; i != modes.size(); ++i) {
        if (wire::has(needs, modes[i]) and modes_[i].denied_by != 0) return false;
        if (not wire::has(fresh.share, modes[i]) and modes_[i].needed_by != 0) return false;
    }
    return true;
}

}  // namespace sluice::smb::server
