#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/smb/server/metadata/user_names.hpp"
#include "sluice/smb/wire/rpc/rpc_account.hpp"
#include "sluice/smb/wire/security/sid.hpp"

namespace sluice::smb::server {

/// The names of the SIDs in this server's security descriptors, and the SIDs of such names: the
/// well-known ones, the host's users and groups by number ("Unix User\1000"), and the users that
/// can log on, as accounts of the server ("SLUICE\alice").
///
/// Thread safety: any thread. Allocates: as user_names.
class account_names {
public:
    /// `server` and `domain`: the names of the server and of its workgroup, which stand for the
    /// same accounts. `users` outlives this; null leaves them out, for a caller who may not ask
    /// who they are.
    account_names(std::string server, std::string domain, user_names* users);

    [[nodiscard]] const wire::rpc_domain& own_domain() const noexcept { return own_; }
    /// Return std::nullopt for an unknown SID or name. A name stands alone or with its domain, as
    /// DOMAIN\name or name@domain, in any case. A client of samr makes the SID of a user from the
    /// server's own domain and the relative ID: of() names that user for it. Complexity:
    /// logarithmic in the users; linear when they have changed.
    [[nodiscard]] std::optional<wire::rpc_account> of(const wire::sid& who) const;
    [[nodiscard]] std::optional<wire::rpc_account> named(std::string_view name) const;
    /// Return the users that can log on, of those with one relative ID the first: the one with a
    /// relative ID, the one with a name, and at most `most` with the smallest relative IDs above
    /// `after`. Complexity: as above, and linear in the result.
    [[nodiscard]] std::optional<wire::rpc_account> user_numbered(std::uint32_t number) const;
    [[nodiscard]] std::optional<wire::rpc_account> user_named(std::string_view name) const;
    [[nodiscard]] std::vector<wire::rpc_account> users_after(std::uint32_t after, std::size_t most) const;
    [[nodiscard]] std::size_t user_count() const;

private:
    [[nodiscard]] wire::rpc_account user(const std::string& name) const;
    [[nodiscard]] bool is_own(std::string_view domain) const;

    wire::rpc_domain own_;
    std::string workgroup_;
    user_names* users_;
};

}  // namespace sluice::smb::server
