#pragma once

#include <cstdint>

#include "sluice/smb/wire/rpc/rpc_handles.hpp"
#include "sluice/smb/wire/rpc/rpc_host.hpp"
#include "sluice/smb/wire/rpc/rpc_ndr.hpp"

namespace sluice::smb::wire {

/// The service of a pipe.
enum class rpc_service : std::uint8_t { srvsvc, wkssvc, lsarpc, samr };

/// The reason for a fault ([MS-RPCE] and C706 appendix E); `none` if the call succeeded.
enum class rpc_fault : std::uint32_t {
    none = 0,
    bad_stub_data = 0x000006F7,
    context_mismatch = 0x1C00001A,  ///< a handle that is not open
    no_memory = 0x1C00001B,
    operation_range = 0x1C010002,
    unknown_interface = 0x1C010003,
};

/// A received call. Its arguments have not been checked.
struct rpc_call {
    std::uint16_t operation = 0;
    bytes_view arguments{};
};

/// Executes a call of [MS-SRVS] (shares, sessions, opens, tree connections, information about the
/// server, time of day) and writes its results. Changes of a share are refused. Other operations
/// fault with `operation_range`. Allocates.
[[nodiscard]] rpc_fault call_srvsvc(rpc_host& host, const rpc_call& call, ndr_writer& results);
/// Executes a call of [MS-WKST] (workstation information, and for administrators the users).
[[nodiscard]] rpc_fault call_wkssvc(rpc_host& host, const rpc_call& call, ndr_writer& results);
/// Executes a call of [MS-LSAD] or [MS-LSAT] with the policies that the client of the pipe has
/// open: opening and closing them, information about the server's domains, names of SIDs, SIDs of
/// names, and the caller's name. Nothing can be changed.
[[nodiscard]] rpc_fault call_lsarpc(rpc_host& host, rpc_handle_table& policies, const rpc_call& call,
                                    ndr_writer& results);
/// Executes a call of [MS-SAMR] with the objects that the client of the pipe has open: domains,
/// users, groups and aliases, their names, and information about them. Nothing can be changed.
[[nodiscard]] rpc_fault call_samr(rpc_host& host, rpc_handle_table& open, const rpc_call& call,
                                  ndr_writer& results);

}  // namespace sluice::smb::wire
