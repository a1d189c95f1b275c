#pragma once

#include <cstddef>
#include <cstdint>

/// The limits for input of peers that are not authenticated.
namespace sluice::smb::auth::limits {

inline constexpr std::size_t token_bytes_max = 64 << 10;  // a Kerberos ticket with many
                                                          // groups is about 48 KiB
inline constexpr std::size_t mechanisms_max = 16;         // in a SPNEGO list; Windows offers four
inline constexpr std::size_t av_pairs_max = 32;           // in an NTLM target information;
                                                          // ten kinds are defined
// The server's description of itself.
inline constexpr std::size_t target_information_bytes_max = 8 << 10;
// For a user, a domain or a workstation.
inline constexpr std::size_t name_utf16_units_max = 256;
inline constexpr unsigned round_trips_max = 4;  // number of steps until an exchange must end

/// The longest message that can be encrypted: the direct TCP transport has a 24-bit length
/// ([MS-SMB2] 2.1).
inline constexpr std::size_t sealed_message_bytes_max = (1 << 24) - 1;

/// The largest number of sealers per key. The part of the nonce that distinguishes them has 24
/// bits.
inline constexpr std::uint32_t sealers_per_key_max = 1 << 24;

/// The largest number of gaps between message ids with a signed reply that a key's nonces keep. A
/// server allows fewer pending requests per connection.
inline constexpr std::size_t unsigned_gaps_max = 1024;

}  // namespace sluice::smb::auth::limits
