#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "sluice/base/bytes.hpp"
#include "sluice/base/result.hpp"
#include "sluice/smb/auth/cipher/gcm.hpp"
#include "sluice/smb/auth/cipher/nonce_observer.hpp"
#include "sluice/smb/auth/cipher/used_message_ids.hpp"
#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::smb::auth {

/// The signing algorithms, with their numbers in SMB2_SIGNING_CAPABILITIES ([MS-SMB2] 2.2.3.1.7).
/// SMB 2.0.2 and 2.1 sign with hmac_sha256, SMB 3 with aes_cmac unless 3.1.1 negotiated another.
enum class signing_algorithm : std::uint16_t { hmac_sha256 = 0, aes_cmac = 1, aes_gmac = 2 };

enum class message_sender : std::uint8_t { client, server };

/// The fields of a message that determine the nonce of aes_gmac. They must agree with the message's
/// header.
struct signed_message {
    std::uint64_t message_id = 0;
    message_sender sender = message_sender::client;
    bool is_cancel = false;  // it repeats the id of the cancelled request, so its nonce must differ
    std::uint16_t ids = 1;   // number of ids that the request uses, from message_id
                             // on: its credit charge
};

using message_signature = std::array<std::byte, 16>;

/// Returns the complete `message` in the form of sign() and verify(), with zeros for its signature
/// field and without changing it. `message` has at least an SMB2 header, and outlives the parts.
[[nodiscard]] std::array<bytes_view, 3> with_zero_signature(bytes_view message) noexcept;

/// A permission for one signature. Thread safety: none of its own.
class signing_permit {
public:
    signing_permit(signing_permit&& from) noexcept
        : which_(from.which_), is_unused_(std::exchange(from.is_unused_, false)) {}
    signing_permit& operator=(signing_permit&& from) noexcept {
        which_ = from.which_;
        is_unused_ = std::exchange(from.is_unused_, false);
        return *this;
    }

private:
    friend class signer;
    explicit signing_permit(const signed_message& which) noexcept : which_(which) {}

    signed_message which_;
    bool is_unused_ = true;
};

/// A signer and verifier of messages with one key ([MS-SMB2] 3.1.4.1, 3.1.5.1).
///
/// Each channel has its own, because an object holds an incomplete computation while it works. With
/// aes_gmac it also holds the nonces, so that a key has one signer, or several with disjoint ranges
/// of message ids. Thread safety: none of its own. Neither copied nor assigned from twice.
/// Allocates: in create(); with aes_gmac also for skipped message ids, up to the largest number so
/// far.
class signer {
public:
    /// Creates a signer. `allowed`: the message ids that it may sign with aes_gmac. Errors:
    /// `not_supported` if this OpenSSL lacks the algorithm, `not_enough_memory`.
    [[nodiscard]] static result<signer> create(signing_algorithm algorithm, const secret_bytes<16>& key,
                                               used_message_ids allowed = used_message_ids()) noexcept;

    /// Permits one signature. With aes_gmac, aborts if a message with that id and sender was
    /// permitted before. Returns std::nullopt if the id is not allowed, or so old that this is
    /// unknown: the connection must end.
    [[nodiscard]] std::optional<signing_permit> permit(const signed_message& which) noexcept;

    /// Returns the signature of a message that consists of consecutive `parts`, with zeros in its
    /// signature field. In a compound, the padding after the message belongs to it. Aborts if
    /// `once`, a result of permit(), was used before.
    [[nodiscard]] message_signature sign(std::span<const bytes_view> parts, signing_permit once) noexcept;
    /// Permits and signs.
    [[nodiscard]] std::optional<message_signature> sign(std::span<const bytes_view> parts,
                                                        const signed_message& which) noexcept;

    /// Returns whether that is the signature. Compares in constant time.
    [[nodiscard]] bool verify(std::span<const bytes_view> parts, const signed_message& which,
                              const message_signature& claimed) noexcept;

    [[nodiscard]] signing_algorithm algorithm() const noexcept { return algorithm_; }

private:
    explicit signer(signing_algorithm algorithm) noexcept : algorithm_(algorithm) {}
    void make_cmac_subkeys() noexcept;
    [[nodiscard]] message_signature compute(std::span<const bytes_view> parts,
                                            const signed_message& which) noexcept;
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
    used_message_ids used_;       // for aes_gmac
    used_message_ids cancelled_;  // CANCEL has its own nonces
    key_fingerprint fingerprint_{};
};

}  // namespace sluice::smb::auth
