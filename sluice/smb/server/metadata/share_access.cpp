#include "sluice/smb/server/metadata/share_access.hpp"

#include <algorithm>

#include "sluice/smb/server/metadata/user_sids.hpp"

namespace sluice::smb::server {

namespace {

constexpr const char* all_guests = "guest";  // in a list of users that may read or write

[[nodiscard]] bool is_denied_by_host(const session& by, const host_rules& rules) {
    if (not rules.are_given()) return false;
    const auto channels = by.channels();
    return not std::ranges::all_of(channels, [&](const std::shared_ptr<channel>& one) {
        return not one->is_established() or rules.permit(one->from);
    });
}

[[nodiscard]] bool names(const user_list& list, const user_identity& user) {
    if (not is_known(user) and list.contains(all_guests)) return true;
    return not user.is_anonymous and list.contains(user.name);
}

[[nodiscard]] bool may_write(const share_configuration& rules, const user_identity& user) {
    if (names(rules.read_only_users, user)) return false;
    if (not is_known(user) and rules.guests != guest_access::write) return false;
    return not rules.write_users.is_given() or names(rules.write_users, user);
}

}  // namespace

share_refusal refusal_of(const server_configuration& rules, const session& by, const share& wanted) {
    const share_configuration& settings = wanted.configuration();
    if (by.user.is_anonymous and not rules.allows_guests)
        return wanted.is_pipes() ? share_refusal::none : share_refusal::anonymous;
    if (not is_known(by.user) and settings.guests == guest_access::none and not wanted.is_pipes())
        return share_refusal::anonymous;
    const bool is_listed = not by.user.is_anonymous and settings.users.contains(by.user.name);
    if (settings.users.is_given() and not is_listed) return share_refusal::not_listed;
    if (is_denied_by_host(by, settings.hosts)) return share_refusal::denied_host;
    const bool needs_encryption = settings.encryption == protection::required;
    if (needs_encryption and not by.encryption_key) return share_refusal::unencrypted;
    return share_refusal::none;
}

bool is_listed_for(const server_configuration& rules, const session& by, const share& wanted) {
    const share_refusal refused = refusal_of(rules, by, wanted);
    return refused == share_refusal::none or refused == share_refusal::unencrypted;
}

wire::access_mask access_max_of(const share& wanted, const user_identity& user) {
    const bool only_reads = not wanted.is_pipes() and not may_write(wanted.configuration(), user);
    return wanted.access_max() & (only_reads ? share::read_only_access : wire::file_all_access);
}

bool may_audit(const share& wanted, wire::access_mask access_max, const user_identity& user) {
    return wire::has(access_max, wire::access_mask::write_dac) and is_known(user) and
           wanted.configuration().auditors.contains(user.name);
}

bool is_still_granted(const server_configuration& rules, const session& by, const tree& of,
                      const share& now) {
    if (refusal_of(rules, by, now) != share_refusal::none) return false;
    // Its volume is the one with the earlier rules.
    if (of.target->configuration().file_rules != now.configuration().file_rules) return false;
    const wire::access_mask granted = access_max_of(now, by.user);
    const bool must_encrypt = now.configuration().encryption == protection::required;
    return wire::has(granted, of.access_max) and (not of.audits or may_audit(now, granted, by.user)) and
           (of.requires_encryption or not must_encrypt);
}

}  // namespace sluice::smb::server
