#pragma once

#include <optional>

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

/// The kind of the data in an error response in 3.1.1.
enum class error_id : std::uint32_t { none = 0, share_redirect = 0x72645253 };

/// ERROR response, [MS-SMB2] 2.2.2: the body of every response with an error status, except a few
/// warnings and STATUS_MORE_PROCESSING_REQUIRED.
struct error_reply {
    /// For STATUS_STOPPED_ON_SYMLINK a symlink_error, for STATUS_BUFFER_TOO_SMALL the required
    /// length, otherwise empty.
    bytes_view data{};
    /// The data are in an error context: from 3.1.1 on, if there are any.
    std::optional<error_id> id{};

    [[nodiscard]] friend bool operator==(const error_reply&, const error_reply&) noexcept = default;
};

/// Decodes the response. If there are several error contexts, it returns the first.
/// Errors: `truncated`, `bad_structure_size`, `range_outside_message`. Allocates: nothing.
[[nodiscard]] decoded<error_reply> decode_error_reply(const message_view& message) noexcept;
void encode(byte_writer& writer, const error_reply& reply) noexcept;

/// Decodes the data of STATUS_BUFFER_TOO_SMALL. Errors: `truncated`.
[[nodiscard]] decoded<std::uint32_t> decode_required_bytes(bytes_view data) noexcept;
void encode_required_bytes(byte_writer& writer, std::uint32_t required_bytes) noexcept;

/// The data of STATUS_STOPPED_ON_SYMLINK, [MS-SMB2] 2.2.2.2.1. The client resolves the link and
/// repeats the request.
struct symlink_error {
    std::uint16_t unparsed_path_bytes = 0;  ///< length of the part of the
                                            ///< requested name after the link
    bool relative = false;                  ///< to the directory of the link
    bytes_view substitute_name{};           ///< UTF-16LE, the target of the link
    bytes_view print_name{};                ///< UTF-16LE, the target for display

    [[nodiscard]] friend bool operator==(const symlink_error&, const symlink_error&) noexcept = default;
};

/// Errors: `truncated`, `bad_value` (another tag), `range_outside_message` (names outside
/// the data), `bad_text`.
[[nodiscard]] decoded<symlink_error> decode_symlink_error(bytes_view data) noexcept;
void encode(byte_writer& writer, const symlink_error& error) noexcept;

}  // namespace sluice::smb::wire
