#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// The controls for referrals to other servers, [MS-DFSC] 2.2. Paths have one leading backslash:
// \server\share\name. encode() and decode() as in fscc_file_metadata.hpp.

namespace sluice::smb::wire {

/// The largest version of a referral, [MS-DFSC] 2.2.5.4.
inline constexpr std::uint16_t dfs_version_max = 4;
/// The largest number of targets in a reply that is accepted.
inline constexpr std::size_t dfs_targets_max = 16;
/// The longest path of a request or reply that is accepted, in bytes of UTF-16.
inline constexpr std::size_t dfs_path_bytes_max = 2048;

/// REQ_GET_DFS_REFERRAL, [MS-DFSC] 2.2.2.
struct dfs_referral_request {
    std::uint16_t version_max = dfs_version_max;
    std::string path{};
    [[nodiscard]] friend bool operator==(const dfs_referral_request&,
                                         const dfs_referral_request&) noexcept = default;
};
/// Errors: `bad_text`.
[[nodiscard]] decoded<void> encode(byte_writer& writer, const dfs_referral_request& request) noexcept;
/// Errors: `truncated`, `missing` without the zero at the end of the path, `too_long`.
/// Allocates: the path.
[[nodiscard]] decoded<dfs_referral_request> decode_dfs_referral_request(bytes_view bytes) noexcept;

/// REQ_GET_DFS_REFERRAL_EX, [MS-DFSC] 2.2.3.
struct dfs_referral_request_ex {
    std::uint16_t version_max = dfs_version_max;
    std::string path{};
    std::optional<std::string> site{};  ///< that the client is in, of Active Directory
    [[nodiscard]] friend bool operator==(const dfs_referral_request_ex&,
                                         const dfs_referral_request_ex&) noexcept = default;
};
/// Errors: `bad_text`.
[[nodiscard]] decoded<void> encode(byte_writer& writer, const dfs_referral_request_ex& request) noexcept;
/// A zero at the end of the path is removed: some clients send it, as in the other request.
/// Errors: `truncated`, `range_outside_message`, `bad_text`, `too_long`. Allocates: the texts.
[[nodiscard]] decoded<dfs_referral_request_ex> decode_dfs_referral_request_ex(bytes_view bytes) noexcept;

/// RESP_GET_DFS_REFERRAL with the targets of a link, [MS-DFSC] 2.2.4 and 2.2.5: not of a root, a
/// domain or a domain controller.
struct dfs_referral_reply {
    std::uint16_t version = dfs_version_max;
    std::uint16_t path_consumed_bytes = 0;   ///< length of the link in the request, as UTF-16
    std::uint32_t time_to_live_seconds = 0;  ///< not in version 1
    std::string path{};                      ///< that the targets replace; not in version 1
    std::vector<std::string> targets{};      ///< the preferred one first
    [[nodiscard]] friend bool operator==(const dfs_referral_reply&,
                                         const dfs_referral_reply&) noexcept = default;
};
/// Returns the length of the reply in bytes. Errors: `bad_text`, `too_long` for a path above
/// dfs_path_bytes_max, `too_many` targets. Complexity: linear.
[[nodiscard]] decoded<std::size_t> encoded_bytes_of(const dfs_referral_reply& reply) noexcept;
/// Errors: those of encoded_bytes_of(), nothing written.
[[nodiscard]] decoded<void> encode(byte_writer& writer, const dfs_referral_reply& reply) noexcept;
/// Path and lifetime are those of the first entry. Errors: `truncated`, `range_outside_message`,
/// `missing` without the zero at the end of a path, `too_long`, `too_many`, `bad_value` for an
/// unknown version or a size that its version excludes, `unsupported` for lists of domains.
/// Allocates: the reply.
[[nodiscard]] decoded<dfs_referral_reply> decode_dfs_referral_reply(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire
