#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/smb/wire/rpc/rpc_lsa.hpp"

// The parts of samr that its calls share.

namespace sluice::smb::wire {

/// The names and uses of the accounts of a domain, by relative ID. The server's own domain has the
/// users, and the group of all users; the domain BUILTIN has aliases.
struct sam_account {
    std::string name{};
    sid_use use = sid_use::user;
    sid id{};
};
using sam_accounts = std::map<std::uint32_t, sam_account>;
/// Allocates: the accounts. Complexity: linear in the users.
[[nodiscard]] sam_accounts sam_accounts_of(rpc_host& host, rpc_object::kind domain);

inline constexpr std::uint32_t sam_group_of_users = 513;

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
