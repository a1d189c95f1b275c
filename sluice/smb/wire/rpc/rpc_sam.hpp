#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/smb/wire/rpc/rpc_lsa.hpp"

// The parts of samr that its calls share.

namespace sluice::smb::wire {

/// An account of a domain. The server's own domain has the users, and the group of all users; the
/// domain BUILTIN has aliases.
struct sam_account {
    std::uint32_t number = 0;  ///< the relative ID
    std::string name{};
    sid_use use = sid_use::user;
    sid id{};
};

/// Return an account by its relative ID, or by its name in any case; std::nullopt if there is none.
/// Complexity: one search of the host.
[[nodiscard]] std::optional<sam_account> sam_account_numbered(rpc_host& host, rpc_object::kind domain,
                                                              std::uint32_t number);
[[nodiscard]] std::optional<sam_account> sam_account_named(rpc_host& host, rpc_object::kind domain,
                                                           std::string_view name);
/// Returns at most `most` accounts of one use, those with the smallest relative IDs above `after`.
/// Allocates: the accounts.
[[nodiscard]] std::vector<sam_account> sam_accounts_after(rpc_host& host, rpc_object::kind domain,
                                                          sid_use wanted, std::uint32_t after,
                                                          std::size_t most);

/// The state that a call of samr works with.
struct sam_call {
    rpc_host& host;
    rpc_handle_table& open;
    ndr_reader& in;
    ndr_writer& out;
};

/// Returns the domain with that handle; std::nullopt for any other handle.
[[nodiscard]] std::optional<rpc_object::kind> sam_domain_of(const rpc_handle_table& open,
                                                            const rpc_handle& handle) noexcept;

/// Execute calls about the accounts of a domain, [MS-SAMR] 3.1.5.2, 3.1.5.11 and 3.1.5.9.
[[nodiscard]] rpc_fault sam_enumerate(sam_call& call, sid_use wanted);
[[nodiscard]] rpc_fault sam_lookup_names(sam_call& call);
[[nodiscard]] rpc_fault sam_lookup_ids(sam_call& call);
[[nodiscard]] rpc_fault sam_alias_membership(sam_call& call);
/// Execute calls about one user, 3.1.5.1.9, 3.1.5.5.5 and 3.1.5.9.1.
[[nodiscard]] rpc_fault sam_open_user(sam_call& call);
[[nodiscard]] rpc_fault sam_query_user(sam_call& call);
[[nodiscard]] rpc_fault sam_groups_for_user(sam_call& call);
/// Executes SamrRidToSid, 3.1.5.13.4. The SID of a user has a domain of its own, so that a client
/// cannot make it from the domain and the relative ID.
[[nodiscard]] rpc_fault sam_rid_to_sid(sam_call& call);

}  // namespace sluice::smb::wire
