#pragma once

#include <array>

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

inline constexpr std::size_t transform_header_bytes = 52;
inline constexpr std::size_t transform_signature_offset = 4;

/// The offset of the data that are authenticated with the ciphertext: the header without protocol
/// id and signature.
inline constexpr std::size_t transform_associated_offset = 20;
inline constexpr std::size_t transform_associated_bytes = 32;

/// SMB2 TRANSFORM_HEADER, [MS-SMB2] 2.2.41, which precedes an encrypted message or compound.
struct transform_header {
    message_signature signature{};
    std::array<std::byte, 16> nonce{};  ///< CCM uses the first 11, GCM the first 12
    std::uint32_t message_bytes = 0;    ///< length of the ciphertext, and of the message
    /// 1: encrypted. In 3.0 and 3.0.2 the field identifies AES-128-CCM, also by 1.
    std::uint16_t flags = 1;
    std::uint64_t session_id = 0;

    [[nodiscard]] friend bool operator==(const transform_header&, const transform_header&) noexcept = default;
};

/// A parsed encrypted frame.
struct encrypted_message {
    transform_header header;
    bytes_view associated;
    bytes_view ciphertext;
};

/// Decodes the header only. Errors: those of decode_transform(), except for a truncated ciphertext.
[[nodiscard]] decoded<transform_header> decode_transform_header(bytes_view frame) noexcept;

/// Parses a frame. Bytes after the announced ciphertext are ignored, because they are not
/// authenticated.
/// Errors: `truncated` (also if the ciphertext is), `bad_protocol_id`, `bad_value` (flags other
/// than 1), `unsupported` (a compression transform, [MS-SMB2] 2.2.42).
[[nodiscard]] decoded<encrypted_message> decode_transform(bytes_view frame) noexcept;

void encode(byte_writer& writer, const transform_header& header) noexcept;

}  // namespace sluice::smb::wire
