#pragma once

#include <vector>

#include "sluice/smb/client/session.hpp"
#include "sluice/smb/wire/rpc/rpc_host.hpp"

namespace sluice::smb::client {

/// Lists the shares of a server with NetrShareEnum at level 1 ([MS-SRVS] 3.1.4.8) through the pipe
/// `srvsvc` of the share IPC$. The names and comments are any text.
///
/// Errors: `status`, such as `access_denied`; `protocol` for an invalid reply, or one with more
/// than wire::rpc_results_bytes_max bytes or wire::rpc_shares_max shares; `policy` if the
/// server's service rejects the call. Allocates: the list. Suspends.
[[nodiscard]] io::task<outcome<std::vector<wire::rpc_share>>> list_shares(session& in) noexcept;

}  // namespace sluice::smb::client
