#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/rpc/rpc_host.hpp"
#include "sluice/smb/wire/rpc/rpc_pdu.hpp"

// The client's side of NetrShareEnum at level 1: a bind, a request, and the fragments of the reply. All of it
// goes over the pipe srvsvc, a fragment per message.

namespace sluice::smb::wire {

/// More shares than this are refused.
inline constexpr std::size_t rpc_shares_max = 65536;

/// A BIND of srvsvc with NDR.
[[nodiscard]] std::vector<std::byte> encode_srvsvc_bind(std::uint32_t call);
/// Whether a whole fragment is the answer to that BIND and accepts it.
/// Errors: `truncated`, `bad_protocol_id`, `too_long`, `unsupported` if it is another message or a refusal.
[[nodiscard]] decoded<void> decode_srvsvc_bind_ack(bytes_view fragment) noexcept;

/// NetrShareEnum at level 1, [MS-SRVS] 3.1.4.8. `server` as the client names it, short enough for one
/// fragment.
[[nodiscard]] std::vector<std::byte> encode_share_enum_request(std::uint32_t call, std::string_view server);

/// A piece of the results; `last` if there are no more.
struct rpc_results_piece {
    bytes_view bytes{};
    std::uint32_t call = 0;
    bool last = false;
};
/// Errors: as above; `unsupported` for a fault.
[[nodiscard]] decoded<rpc_results_piece> decode_rpc_response(bytes_view fragment) noexcept;

/// What the call returned.
struct share_enum_results {
    std::vector<rpc_share> shares{};
    std::uint32_t status = 0;  ///< a Windows error code
};
/// Of all pieces, put together. Errors: `truncated` if they are not what the call returns, `too_many`.
/// Allocates.
[[nodiscard]] decoded<share_enum_results> decode_share_enum_results(bytes_view results) noexcept;

}  // namespace sluice::smb::wire
