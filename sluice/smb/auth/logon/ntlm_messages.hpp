#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// The three messages of NTLM ([MS-NLMP] 2.2.1) and their contents. Decoded messages borrow from
// their bytes.

namespace sluice::smb::auth::ntlm {

/// NegotiateFlags, [MS-NLMP] 2.2.2.5.
namespace flag {
inline constexpr std::uint32_t unicode = 0x00000001;
inline constexpr std::uint32_t request_target = 0x00000004;
inline constexpr std::uint32_t sign = 0x00000010;
inline constexpr std::uint32_t seal = 0x00000020;
inline constexpr std::uint32_t ntlm = 0x00000200;
inline constexpr std::uint32_t anonymous = 0x00000800;
inline constexpr std::uint32_t always_sign = 0x00008000;
inline constexpr std::uint32_t target_type_server = 0x00020000;
inline constexpr std::uint32_t extended_session_security = 0x00080000;
inline constexpr std::uint32_t target_info = 0x00800000;
inline constexpr std::uint32_t version = 0x02000000;
inline constexpr std::uint32_t bits_128 = 0x20000000;
inline constexpr std::uint32_t key_exchange = 0x40000000;
inline constexpr std::uint32_t bits_56 = 0x80000000;
}  // namespace flag

/// AV_PAIR identifiers, [MS-NLMP] 2.2.2.1.
enum class av_id : std::uint16_t {
    end = 0,
    netbios_computer = 1,
    netbios_domain = 2,
    dns_computer = 3,
    dns_domain = 4,
    flags = 6,
    timestamp = 7,
    target_name = 9,
    channel_bindings = 10,
};
inline constexpr std::uint32_t av_flag_has_mic = 2;

using challenge_bytes = std::array<std::byte, 8>;
using mic_bytes = std::array<std::byte, 16>;

/// Target information: a list of named values up to an end mark. Bytes after it are ignored.
class av_pairs {
public:
    /// Errors: `truncated`, `missing` (the end mark), `too_many`. Allocates: nothing.
    [[nodiscard]] static wire::decoded<av_pairs> decode(bytes_view bytes) noexcept;

    /// Returns the value of the first such pair.
    [[nodiscard]] std::optional<bytes_view> find(av_id which) const noexcept;
    /// Returns whether the message with these pairs has a MIC.
    [[nodiscard]] bool announce_mic() const noexcept;
    /// Returns the pairs without the end mark.
    [[nodiscard]] bytes_view without_end() const noexcept { return pairs_; }

private:
    explicit av_pairs(bytes_view pairs) noexcept : pairs_(pairs) {}
    bytes_view pairs_;
};

/// An encoder of pairs. Allocates: its bytes.
class av_pair_writer {
public:
    av_pair_writer& add(av_id which, bytes_view value);
    /// Appends pairs of another list.
    av_pair_writer& add_all(bytes_view pairs);
    /// Returns the list with its end mark. The writer cannot be used afterwards.
    [[nodiscard]] std::vector<std::byte> finish();

private:
    std::vector<std::byte> bytes_;
};

[[nodiscard]] bool is_ntlm(bytes_view token) noexcept;

/// The client's capabilities, [MS-NLMP] 2.2.1.1. SMB does not use the names in it, so they are not
/// decoded.
struct negotiate_message {
    std::uint32_t flags = 0;
};

/// [MS-NLMP] 2.2.1.2.
struct challenge_message {
    std::uint32_t flags = 0;
    challenge_bytes server_challenge{};
    bytes_view target_name;  // UTF-16LE
    bytes_view target_info;  // AV pairs
};

/// [MS-NLMP] 2.2.1.3; names are UTF-16LE.
struct authenticate_message {
    std::uint32_t flags = 0;
    bytes_view lm_response;
    bytes_view nt_response;
    bytes_view domain;
    bytes_view user;
    bytes_view workstation;
    bytes_view encrypted_session_key;
    std::optional<mic_bytes> mic;  // the bytes in its place, if the message is long enough
};
inline constexpr std::size_t mic_offset = 72;  // within an AUTHENTICATE message

/// The length of an NTLMv1 response, [MS-NLMP] 2.2.2.6. Longer ones are NTLMv2.
inline constexpr std::size_t nt_v1_response_bytes = 24;

/// The NTLMv2 response to a challenge, [MS-NLMP] 2.2.2.8: a proof, followed by the blob that it
/// authenticates.
struct nt_v2_response {
    std::array<std::byte, 16> proof{};
    bytes_view client_blob;  // NTLMv2_CLIENT_CHALLENGE, 2.2.2.7
    av_pairs pairs;          // within the blob
};

/// Errors: `bad_protocol_id`, `truncated`, `range_outside_message`,
/// `bad_value`. Allocates: nothing.
[[nodiscard]] wire::decoded<negotiate_message> decode_negotiate(bytes_view token) noexcept;
[[nodiscard]] wire::decoded<challenge_message> decode_challenge(bytes_view token) noexcept;
[[nodiscard]] wire::decoded<authenticate_message> decode_authenticate(bytes_view token) noexcept;
/// Errors: `truncated` (also for an NTLMv1 response), `bad_value`, and those of av_pairs.
[[nodiscard]] wire::decoded<nt_v2_response> decode_nt_v2_response(bytes_view response) noexcept;

/// Encode a message. Allocate: the message.
[[nodiscard]] std::vector<std::byte> encode(const negotiate_message& message);
[[nodiscard]] std::vector<std::byte> encode(const challenge_message& message);
[[nodiscard]] std::vector<std::byte> encode(const authenticate_message& message);

struct client_blob_contents {
    std::uint64_t filetime = 0;
    challenge_bytes client_challenge{};
    bytes_view pairs;  // including their end mark
};
[[nodiscard]] std::vector<std::byte> encode_client_blob(const client_blob_contents& contents);

}  // namespace sluice::smb::auth::ntlm
