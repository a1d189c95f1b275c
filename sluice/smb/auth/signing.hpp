#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "sluice/base/bytes.hpp"
#include "sluice/base/result.hpp"
#include "sluice/smb/auth/gcm.hpp"
#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::smb::auth {

/// With their numbers in SMB2_SIGNING_CAPABILITIES ([MS-SMB2] 2.2.3.1.7). SMB 2.0.2 and 2.1 sign with
/// hmac_sha256, SMB 3 with aes_cmac unless 3.1.1 agreed on another.
enum class signing_algorithm : std::uint16_t { hmac_sha256 = 0, aes_cmac = 1, aes_gmac = 2 };

enum class message_sender : std::uint8_t { client, server };

/// What of a message aes_gmac makes its nonce of; it must agree with the message's header.
struct signed_message {
    std::uint64_t message_id = 0;
    message_sender sender = message_sender::client;
    bool is_cancel = false;  // it repeats the id of what it cancels, so it must not repeat its nonce
};

using message_signature = std::array<std::byte, 16>;

/// The whole `message` as sign() and verify() want it, with zeros for its signature field and without
/// changing it. `message` has an SMB2 header at least, and outlives the parts.
[[nodiscard]] std::array<bytes_view, 3> with_zero_signature(bytes_view message) noexcept;

/// Signs messages, and verifies them, with one key ([MS-SMB2] 3.1.4.1, 3.1.5.1).
///
/// Each channel has its own: an object holds a half-finished computation while it works. Thread safety: none
/// of its own. Errors: none after create(). Allocates: only in create().
class signer {
public:
    /// Errors: `not_supported` if this OpenSSL lacks the algorithm, `not_enough_memory`.
    [[nodiscard]] static result<signer> create(signing_algorithm algorithm,
                                               const secret_bytes<16>& key) noexcept;

    /// The signature of a message that stands in `parts`, one after another, with zeros for its signature.
    /// Of one in a compound, the padding behind it is a part of it.
    [[nodiscard]] message_signature sign(std::span<const bytes_view> parts,
                                         const signed_message& which) noexcept;

    /// Is that the signature? Compares in constant time.
    [[nodiscard]] bool verify(std::span<const bytes_view> parts, const signed_message& which,
                              const message_signature& claimed) noexcept;

    [[nodiscard]] signing_algorithm algorithm() const noexcept { return algorithm_; }

private:
    explicit signer(signing_algorithm algorithm) noexcept : algorithm_(algorithm) {}
    void make_cmac_subkeys() noexcept;
    [[nodiscard]] message_signature sign_hmac(std::span<const bytes_view> parts) noexcept;
    [[nodiscard]] message_signature sign_cmac(std::span<const bytes_view> parts) noexcept;
    [[nodiscard]] message_signature sign_gmac(std::span<const bytes_view> parts,
                                              const signed_message& which) noexcept;

    signing_algorithm algorithm_;
    std::optional<hmac_sha256> hmac_;
    detail::gcm gcm_;
    detail::cipher_context cbc_;     // for aes_cmac
    secret_bytes<16> whole_subkey_;  // K1 and K2 of RFC 4493
    secret_bytes<16> padded_subkey_;
};

}  // namespace sluice::smb::auth
