#include "sluice/smb/server/session/session.hpp"

#include <algorithm>

namespace sluice::smb::server {

user_identity identity_of(const auth::step_done& who) {
    if (who.is_anonymous) return {.name = {}, .domain = {}, .is_guest = false, .is_anonymous = true};
    return {.name = who.user, .domain = who.domain, .is_guest = who.is_guest, .is_anonymous = false};
}

bool is_same_account(const auth::account_source& accounts, const user_identity& one,
                     const user_identity& other) noexcept {
    if (one.is_anonymous or other.is_anonymous or one.is_guest != other.is_guest) return false;
    return accounts.is_same({one.name, one.domain}, {other.name, other.domain});
}

result<void> session::make_ciphers(channel& of, secret_random_source& random) noexcept {
    if (not sealing) return {};
    return of.make_ciphers(*sealing, *opening, random);
}

channel* session::first_channel() const noexcept {
    const auto found = std::ranges::find_if(channels, &channel::is_established);
    return found == channels.end() ? nullptr : *found;
}

}  // namespace sluice::smb::server
