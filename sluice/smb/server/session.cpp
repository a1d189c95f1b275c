#include "sluice/smb/server/session.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/channel.hpp"

namespace sluice::smb::server {

user_identity identity_of(const auth::step_done& who) {
    if (who.is_anonymous) return {.name = {}, .domain = {}, .is_guest = false, .is_anonymous = true};
    return {.name = who.user, .domain = who.domain, .is_guest = who.is_guest, .is_anonymous = false};
}

bool is_same_account(const user_identity& one, const user_identity& other) noexcept {
    return is_account(one) and is_account(other) and equal_ignoring_case(one.name, other.name) and
           equal_ignoring_case(one.domain, other.domain) and one.is_guest == other.is_guest;
}

channel* session::first_channel() const noexcept {
    const auto found = std::ranges::find_if(channels, &channel::is_established);
    return found == channels.end() ? nullptr : *found;
}

}  // namespace sluice::smb::server
