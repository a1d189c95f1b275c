#pragma once

#include <optional>

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// What the data of an error response in 3.1.1 are about.
enum class error_id : std::uint32_t { none = 0, share_redirect = 0x72645253 };

/// ERROR response, [MS-SMB2] 2.2.2: the body of every response with an error status but for a few warnings
/// and STATUS_MORE_PROCESSING_REQUIRED.
struct error_reply {
    /// For STATUS_STOPPED_ON_SYMLINK a symlink_error, for STATUS_BUFFER_TOO_SMALL the length that would do,
    /// otherwise nothing.
    bytes_view data{};
    std::optional<error_id> id{};  ///< the data stand in an error context: from 3.1.1 on, if there are any

    [[nodiscard]] friend bool operator==(const error_reply&, const error_reply&) noexcept = default;
};

/// Of several error contexts the first counts.
/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`. Allocates: nothing.
[[nodiscard]] decoded<error_reply> decode_error_reply(const message_view& message) noexcept;
void encode(byte_writer& writer, const error_reply& reply) noexcept;

/// The data for STATUS_BUFFER_TOO_SMALL. Errors: `truncated`.
[[nodiscard]] decoded<std::uint32_t> decode_required_bytes(bytes_view data) noexcept;
void encode_required_bytes(byte_writer& writer, std::uint32_t required_bytes) noexcept;

/// The data for STATUS_STOPPED_ON_SYMLINK, [MS-SMB2] 2.2.2.2.1: the client is to resolve the link and ask
/// again.
struct symlink_error {
    std::uint16_t unparsed_path_bytes = 0;  ///< of the name asked for, what comes after the link
    bool relative = false;                  ///< to the folder of the link
    bytes_view substitute_name{};           ///< UTF-16LE, where the link leads
    bytes_view print_name{};                ///< UTF-16LE, the same for people to read

    [[nodiscard]] friend bool operator==(const symlink_error&, const symlink_error&) noexcept = default;
};

/// Errors: `truncated`, `bad_value` (another tag), `range_outside_message` (names outside the data),
/// `bad_text`.
[[nodiscard]] decoded<symlink_error> decode_symlink_error(bytes_view data) noexcept;
void encode(byte_writer& writer, const symlink_error& error) noexcept;

}  // namespace sluice::smb::wire
