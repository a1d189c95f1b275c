#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/rpc/rpc_host.hpp"
#include "sluice/smb/wire/rpc/rpc_pdu.hpp"

// The client's side of NetrShareEnum at level 1: a bind, a request, and the fragments of the reply,
// all over the pipe srvsvc, one fragment per message.

namespace sluice::smb::wire {

/// The largest number of shares that is accepted.
inline constexpr std::size_t rpc_shares_max = 65536;

/// Encodes a BIND of an interface with NDR; the same for srvsvc.
[[nodiscard]] std::vector<std::byte> encode_rpc_bind(const rpc_syntax& interface, std::uint32_t call);
[[nodiscard]] std::vector<std::byte> encode_srvsvc_bind(std::uint32_t call);
/// Checks that a complete fragment is the response to that BIND and accepts it. Errors:
/// `truncated`, `bad_protocol_id`, `too_long`, `unsupported` if it is another message or a
/// rejection.
[[nodiscard]] decoded<void> decode_srvsvc_bind_ack(bytes_view fragment) noexcept;

/// Encodes NetrShareEnum at level 1, [MS-SRVS] 3.1.4.8. `server` is the name that the client uses,
/// short enough for one fragment.
[[nodiscard]] std::vector<std::byte> encode_share_enum_request(std::uint32_t call, std::string_view server);

/// A segment of the results; `last` if it is the final one.
struct rpc_results_piece {
    bytes_view bytes{};
    std::uint32_t call = 0;
    bool last = false;
};
/// Errors: as above; `unsupported` for a fault.
[[nodiscard]] decoded<rpc_results_piece> decode_rpc_response(bytes_view fragment) noexcept;

/// The results of the call.
struct share_enum_results {
    std::vector<rpc_share> shares{};
    std::uint32_t status = 0;  ///< a Windows error code
};
/// Decodes the concatenated segments. Errors: `truncated` if they are not a result of the call,
/// `too_many`. Allocates.
[[nodiscard]] decoded<share_enum_results> decode_share_enum_results(bytes_view results) noexcept;

}  // namespace sluice::smb::wire
