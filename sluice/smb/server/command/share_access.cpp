#include "sluice/smb/server/command/share_access.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"

namespace sluice::smb::server {

share_refusal refusal_of(const server_configuration& rules, const session& by, const share& wanted) {
    if (by.user.is_anonymous and not rules.allows_guests)
        return wanted.is_pipes() ? share_refusal::none : share_refusal::anonymous;
    const auto& users = wanted.configuration().users;
    const bool is_listed =
        not by.user.is_anonymous and std::ranges::any_of(users, [&](std::string_view each) {
            return equal_ignoring_case(each, std::string_view(by.user.name));
        });
    if (not users.empty() and not is_listed) return share_refusal::not_listed;
    const bool needs_encryption = wanted.configuration().encryption == protection::required;
    if (needs_encryption and not by.encryption_key) return share_refusal::unencrypted;
    return share_refusal::none;
}

}  // namespace sluice::smb::server
