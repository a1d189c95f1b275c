#pragma once

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// Direct TCP transport, [MS-SMB2] 2.1: a zero byte and a length of three bytes, most significant
// first, precede every message or compound.

namespace sluice::smb::wire {

inline constexpr std::size_t frame_prefix_bytes = 4;
inline constexpr std::size_t frame_bytes_max = 0xff'ffff;

/// Returns the number of bytes after the prefix at the front of `received`.
/// Errors: `truncated` (fewer than four bytes), `bad_protocol_id` (a nonzero first byte: a NetBIOS
/// session service packet, or not SMB), `too_long` (more than `length_max`).
[[nodiscard]] decoded<std::size_t> decode_frame_prefix(bytes_view received, std::size_t length_max) noexcept;

/// Writes the prefix of a frame of `length` bytes, which are at most `frame_bytes_max`.
void encode_frame_prefix(byte_writer& writer, std::size_t length) noexcept;

/// The kind of a frame, which its first four bytes determine.
enum class frame_kind {
    smb2,
    smb1,        ///< only a negotiate request is accepted, see smb1_negotiate.hpp
    encrypted,   ///< see transform_header.hpp
    compressed,  ///< see compressed_message.hpp; only if compression was negotiated
};

/// Errors: `truncated`, `bad_protocol_id`.
[[nodiscard]] decoded<frame_kind> kind_of_frame(bytes_view frame) noexcept;

}  // namespace sluice::smb::wire
