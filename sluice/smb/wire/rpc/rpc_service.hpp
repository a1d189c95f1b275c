#pragma once

#include <cstdint>

#include "sluice/smb/wire/rpc/rpc_host.hpp"
#include "sluice/smb/wire/rpc/rpc_ndr.hpp"

namespace sluice::smb::wire {

/// The service of a pipe.
enum class rpc_service : std::uint8_t { srvsvc, wkssvc };

/// The reason for a fault ([MS-RPCE] and C706 appendix E); `none` if the call succeeded.
enum class rpc_fault : std::uint32_t {
    none = 0,
    bad_stub_data = 0x000006F7,
    no_memory = 0x1C00001B,
    operation_range = 0x1C010002,
    unknown_interface = 0x1C010003,
    protocol = 0x1C01000B,
};

/// A received call. Its arguments have not been checked.
struct rpc_call {
    std::uint16_t operation = 0;
    bytes_view arguments{};
};

/// Executes a call of [MS-SRVS] (share enumeration and information, server information, time of
/// day) and writes its results. Changes of a share are refused. Other operations fault with
/// `operation_range`. Allocates.
[[nodiscard]] rpc_fault call_srvsvc(const rpc_host& host, const rpc_call& call, ndr_writer& results);
/// Executes a call of [MS-WKST] (workstation information).
[[nodiscard]] rpc_fault call_wkssvc(const rpc_host& host, const rpc_call& call, ndr_writer& results);

}  // namespace sluice::smb::wire
