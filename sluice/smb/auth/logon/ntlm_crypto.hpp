#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sluice/smb/auth/logon/nt_hash.hpp"
#include "sluice/smb/auth/logon/ntlm_messages.hpp"
#include "sluice/smb/auth/logon/rc4.hpp"
#include "sluice/smb/auth/secret.hpp"

// The computations of NTLMv2, [MS-NLMP] 3.3.2 and 3.4. All require has_md5().

namespace sluice::smb::auth::ntlm {

/// Returns NTOWFv2: the key of an account's responses. The names are UTF-16LE, the domain as the
/// client wrote it. Allocates: the upper-case name.
[[nodiscard]] secret_bytes<16> response_key(const nt_hash& hash, bytes_view user, bytes_view domain);

/// Returns NTProofStr, which proves that the owner of the key created this blob for this challenge.
[[nodiscard]] secret_bytes<16> proof_of(const secret_bytes<16>& response_key, const challenge_bytes& server,
                                        bytes_view client_blob) noexcept;

/// Returns SessionBaseKey, which in NTLMv2 is also the KeyExchangeKey (KXKEY).
[[nodiscard]] secret_bytes<16> session_base_key(const secret_bytes<16>& response_key,
                                                bytes_view proof) noexcept;

/// Encrypts or decrypts the key that the client generated.
[[nodiscard]] secret_bytes<16> exchange_key(const secret_bytes<16>& key_exchange_key,
                                            bytes_view session_key) noexcept;

/// The three messages as transferred.
struct conversation {
    bytes_view negotiate;
    bytes_view challenge;
    bytes_view authenticate;
};

/// Returns the MIC of all three messages, with zeros in place of the last one's MIC. `authenticate`
/// is long enough to have one.
[[nodiscard]] secret_bytes<16> mic_of(const secret_bytes<16>& exported_session_key,
                                      const conversation& messages) noexcept;

enum class signing_side : std::uint8_t { client, server };

/// A signer of consecutive messages of one side, with extended session security (3.4.4.2). SMB does
/// not sign this way, only SPNEGO's mechListMIC uses it. Thread safety: none of its own.
class message_signer {
public:
    using signature = std::array<std::byte, 16>;

    /// `flags` are the negotiated ones: the length of the sealing key and its use depend on them.
    message_signer(const secret_bytes<16>& exported_session_key, signing_side side,
                   std::uint32_t flags) noexcept;

    /// Returns the signature of that side's next message.
    [[nodiscard]] signature sign(bytes_view message) noexcept;
    [[nodiscard]] bool verify(bytes_view message, bytes_view claimed) noexcept;

private:
    secret_bytes<16> signing_key_;
    std::optional<rc4> sealing_;  // checksums are encrypted only after a key exchange
    std::uint32_t sequence_ = 0;
};

}  // namespace sluice::smb::auth::ntlm
