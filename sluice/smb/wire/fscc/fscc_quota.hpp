#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/security/sid.hpp"

// Quotas of users on a volume. encode() and decode() as in fscc_file_metadata.hpp.

namespace sluice::smb::wire {

/// FILE_QUOTA_INFORMATION, [MS-FSCC] 2.4.40, without the distance to the next one.
struct quota_information {
    static constexpr std::uint64_t unlimited = ~std::uint64_t{0};    ///< a threshold or limit
    static constexpr std::uint64_t deleted = ~std::uint64_t{0} - 1;  ///< a limit: removes the entry

    std::uint64_t change_time = 0;  ///< a filetime; 0: unknown
    std::uint64_t used_bytes = 0;   ///< ignored when it is set
    std::uint64_t threshold_bytes = unlimited;
    std::uint64_t limit_bytes = unlimited;
    sid user{};
    [[nodiscard]] friend bool operator==(const quota_information&,
                                         const quota_information&) noexcept = default;
};
/// Returns the bytes of a list of entries that fit into `room`, from the first one on; `count`
/// receives how many. Complexity: linear.
[[nodiscard]] bytes_view encode_quotas(mutable_bytes room, const std::vector<quota_information>& entries,
                                       std::size_t& count) noexcept;
/// Decodes such a list. Errors: `truncated`, `bad_chain`, `range_outside_message`, `bad_value` for
/// an invalid SID, `too_many` above `entries_max`. Allocates: the list.
[[nodiscard]] decoded<std::vector<quota_information>> decode_quotas(bytes_view bytes,
                                                                    std::size_t entries_max) noexcept;

/// SMB2_QUERY_QUOTA_INFO, [MS-SMB2] 2.2.37.1, with the SIDs of [MS-FSCC] 2.4.40.1.
struct quota_query {
    bool wants_one = false;
    bool restarts = false;
    std::vector<sid> users{};    ///< empty: all
    std::optional<sid> after{};  ///< all users that follow this one; not with `users`
    [[nodiscard]] friend bool operator==(const quota_query&, const quota_query&) noexcept = default;
};
void encode(byte_writer& writer, const quota_query& query) noexcept;
/// Errors: as decode_quotas. Allocates: the SIDs.
[[nodiscard]] decoded<quota_query> decode_quota_query(bytes_view bytes, std::size_t users_max) noexcept;

}  // namespace sluice::smb::wire
