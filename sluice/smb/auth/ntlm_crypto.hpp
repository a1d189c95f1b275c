#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sluice/smb/auth/nt_hash.hpp"
#include "sluice/smb/auth/ntlm_messages.hpp"
#include "sluice/smb/auth/rc4.hpp"
#include "sluice/smb/auth/secret.hpp"

// The computations of NTLMv2, [MS-NLMP] 3.3.2 and 3.4. All require has_md5().

namespace sluice::smb::auth::ntlm {

/// NTOWFv2: the key that an account's answers are made with. The names are UTF-16LE, the domain as the client
/// spells it. Allocates: the upper-case name.
[[nodiscard]] secret_bytes<16> response_key(const nt_hash& hash, bytes_view user, bytes_view domain);

/// NTProofStr: the proof that one who has the key made this blob for this challenge.
[[nodiscard]] secret_bytes<16> proof_of(const secret_bytes<16>& response_key, const challenge_bytes& server,
                                        bytes_view client_blob) noexcept;

/// SessionBaseKey, which with NTLMv2 is also the KeyExchangeKey (KXKEY).
[[nodiscard]] secret_bytes<16> session_base_key(const secret_bytes<16>& response_key,
                                                bytes_view proof) noexcept;

/// Encrypts the key the client made up, or decrypts it again.
[[nodiscard]] secret_bytes<16> exchange_key(const secret_bytes<16>& key_exchange_key,
                                            bytes_view session_key) noexcept;

/// The three messages as they went over the wire.
struct conversation {
    bytes_view negotiate;
    bytes_view challenge;
    bytes_view authenticate;
};

/// The MIC over all three, the last one's own counting as zeros. `authenticate` is long enough to have one.
[[nodiscard]] secret_bytes<16> mic_of(const secret_bytes<16>& exported_session_key,
                                      const conversation& messages) noexcept;

enum class signing_side : std::uint8_t { client, server };

/// Signs what one side says, one message after another, with extended session security (3.4.4.2). SMB does
/// not sign this way; only SPNEGO's mechListMIC is such a signature. Thread safety: none of its own.
class message_signer {
public:
    using signature = std::array<std::byte, 16>;

    /// `flags` as finally agreed: the length of the sealing key and whether it is used depend on them.
    message_signer(const secret_bytes<16>& exported_session_key, signing_side side,
                   std::uint32_t flags) noexcept;

    /// The signature of that side's next message.
    [[nodiscard]] signature sign(bytes_view message) noexcept;
    [[nodiscard]] bool verify(bytes_view message, bytes_view claimed) noexcept;

private:
    secret_bytes<16> signing_key_;
    std::optional<rc4> sealing_;  // only after a key exchange are checksums encrypted
    std::uint32_t sequence_ = 0;
};

}  // namespace sluice::smb::auth::ntlm
