#pragma once

#include <cstdint>
#include <string>

#include "sluice/smb/wire/security/sid.hpp"

// The names of SIDs, [MS-LSAT] and [MS-SAMR].

namespace sluice::smb::wire {

/// The kinds of accounts with a SID, [MS-LSAT] 2.2.13.
enum class sid_use : std::uint16_t {
    user = 1,
    group = 2,
    domain = 3,
    alias = 4,
    well_known_group = 5,
    unknown = 8,
};

/// The relative ID of the group of all users in the domain of a server, [MS-SAMR] 2.2.1.14.
inline constexpr std::uint32_t sam_group_of_users = 513;

/// An issuer of SIDs: a server, or an authority such as BUILTIN. The name may be empty.
struct rpc_domain {
    std::string name{};
    sid id{};
    [[nodiscard]] friend bool operator==(const rpc_domain&, const rpc_domain&) noexcept = default;
};

/// A SID with its name. That of a domain is its own domain, and has no name besides the domain's;
/// any other is the SID of its domain with one more subauthority, the relative ID.
struct rpc_account {
    sid id{};
    sid_use use = sid_use::unknown;
    std::string name{};
    rpc_domain domain{};
    [[nodiscard]] friend bool operator==(const rpc_account&, const rpc_account&) noexcept = default;
};

}  // namespace sluice::smb::wire
