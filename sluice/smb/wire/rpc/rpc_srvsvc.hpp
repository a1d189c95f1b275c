#pragma once

#include <cstdint>
#include <optional>

#include "sluice/smb/wire/rpc/rpc_service.hpp"

// The parts of srvsvc and wkssvc that their calls share.

namespace sluice::smb::wire {

// Results, [MS-ERREF] 2.2 and [MS-SRVS] 2.2.2.
inline constexpr std::uint32_t rpc_no_error = 0;
inline constexpr std::uint32_t rpc_error_access_denied = 5;
inline constexpr std::uint32_t rpc_error_invalid_level = 124;
inline constexpr std::uint32_t rpc_error_more_data = 234;
inline constexpr std::uint32_t rpc_error_share_not_found = 2310;
inline constexpr std::uint32_t rpc_error_client_not_found = 2312;
inline constexpr std::uint32_t rpc_error_file_not_found = 2314;

/// The request for a list, without its filters.
struct rpc_enum {
    std::uint32_t level = 0;
    std::uint32_t bytes_max = 0;  ///< that the client prefers
    bool resumes = false;         ///< the client can continue the list
    std::uint32_t after = 0;      ///< the ID of the last entry that it has; 0: it has none
};
[[nodiscard]] std::optional<rpc_enum> take_rpc_enum(ndr_reader& in) noexcept;

/// The largest part of a list in one reply: entries, and bytes. A client asks for the next part
/// with the ID of the last entry.
inline constexpr std::size_t rpc_listed_max = 1000;
inline constexpr std::size_t rpc_listed_bytes_max = 512 * 1024;
/// How many paths one call determines: a path takes longer than the rest of an entry.
inline constexpr std::size_t rpc_paths_max = 1000;

/// Execute calls of [MS-SRVS] about sessions, opens and tree connections: 3.1.4.1 to 3.1.4.6.
/// Administrators only, except that a user lists sessions of their own at levels 0 and 10.
[[nodiscard]] rpc_fault connection_enum(rpc_host& host, ndr_reader& in, ndr_writer& out);
[[nodiscard]] rpc_fault file_enum(rpc_host& host, ndr_reader& in, ndr_writer& out);
[[nodiscard]] rpc_fault file_get_info(rpc_host& host, ndr_reader& in, ndr_writer& out);
[[nodiscard]] rpc_fault file_close(rpc_host& host, ndr_reader& in, ndr_writer& out);
[[nodiscard]] rpc_fault session_enum(rpc_host& host, ndr_reader& in, ndr_writer& out);
[[nodiscard]] rpc_fault session_del(rpc_host& host, ndr_reader& in, ndr_writer& out);

}  // namespace sluice::smb::wire
