#pragma once

#include <cstddef>
#include <cstdint>

/// What this component accepts at most from somebody who has not proved who he is.
namespace sluice::smb::auth::limits {

inline constexpr std::size_t token_bytes_max = 64
                                               << 10;  // a Kerberos ticket with many groups is about 48 KiB
inline constexpr std::size_t mechanisms_max = 16;      // of a SPNEGO list; Windows offers four
inline constexpr std::size_t av_pairs_max = 32;        // of an NTLM target information; ten kinds are defined
inline constexpr std::size_t target_information_bytes_max = 8 << 10;  // what a server tells of itself
inline constexpr std::size_t name_utf16_units_max = 256;              // of a user, a domain or a workstation
inline constexpr unsigned round_trips_max = 4;  // until an exchange must have come to an end

/// The longest message that can be sealed: the direct TCP transport counts in 24 bits ([MS-SMB2] 2.1).
inline constexpr std::size_t sealed_message_bytes_max = (1 << 24) - 1;

/// How many sealers one key can have: the part of the nonce that tells them apart has 24 bits.
inline constexpr std::uint32_t sealers_per_key_max = 1 << 24;

/// Message ids without a signed reply among those with one, in ranges, that the nonces of a key are kept for:
/// more than a server lets requests of one connection wait.
inline constexpr std::size_t unsigned_gaps_max = 1024;

}  // namespace sluice::smb::auth::limits
