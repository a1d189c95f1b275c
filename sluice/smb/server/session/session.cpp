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
    ENSURE(of.session.get() == this, "a channel gets the keys of its own session");
    ENSURE(sealing.has_value() == opening.has_value(), "a session has both encryption keys or none");
    if (not sealing) return {};
    return of.make_ciphers(*sealing, *opening, random);
}

channel* session::first_channel() const noexcept {
    const auto found = std::ranges::find_if(channels, &channel::is_established);
    ENSURE(found == channels.end() or (*found)->session.get() == this,
           "a channel in the list of a session is one of it");
    return found == channels.end() ? nullptr : *found;
}

}  // namespace sluice::smb::server
