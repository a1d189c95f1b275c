#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "sluice/base/bytes.hpp"
#include "sluice/base/result.hpp"
#include "sluice/smb/auth/gcm.hpp"
#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/auth/nonce_witness.hpp"
#include "sluice/smb/auth/secret.hpp"
#include "sluice/smb/auth/used_message_ids.hpp"

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
    std::uint16_t ids = 1;   // that the request has used up, from message_id on: its credit charge
};

using message_signature = std::array<std::byte, 16>;

/// The whole `message` as sign() and verify() want it, with zeros for its signature field and without
/// changing it. `message` has an SMB2 header at least, and outlives the parts.
[[nodiscard]] std::array<bytes_view, 3> with_zero_signature(bytes_view message) noexcept;

/// Entitles to one signature. Thread safety: none of its own.
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

/// Signs messages, and verifies them, with one key ([MS-SMB2] 3.1.4.1, 3.1.5.1).
///
/// Each channel has its own: an object holds a half-finished computation while it works. With aes_gmac it
/// also holds the nonces, so that one key has one signer, or several whose ranges of message ids are
/// disjoint. Thread safety: none of its own. Neither copied nor assigned from twice. Allocates: in create();
/// with aes_gmac also for the message ids that were left out, until there were never more.
class signer {
public:
    /// `allowed`: the message ids that it may sign with aes_gmac.
    /// Errors: `not_supported` if this OpenSSL lacks the algorithm, `not_enough_memory`.
    [[nodiscard]] static result<signer> create(signing_algorithm algorithm, const secret_bytes<16>& key,
                                               used_message_ids allowed = used_message_ids()) noexcept;

    /// With aes_gmac, aborts if a message of that id and sender was permitted before. Returns std::nullopt if
    /// the id is not allowed, or so old that this is not known: the connection must end.
    [[nodiscard]] std::optional<signing_permit> permit(const signed_message& which) noexcept;

    /// The signature of a message that stands in `parts`, one after another, with zeros for its signature.
    /// In a compound, the padding after the message is a part of it. Aborts if
    /// `once`, which permit() gave, was used before.
    [[nodiscard]] message_signature sign(std::span<const bytes_view> parts, signing_permit once) noexcept;
    /// Both at once.
    [[nodiscard]] std::optional<message_signature> sign(std::span<const bytes_view> parts,
                                                        const signed_message& which) noexcept;

    /// Is that the signature? Compares in constant time.
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
    used_message_ids cancelled_;  // CANCEL has nonces of its own
    key_fingerprint fingerprint_{};
};

}  // namespace sluice::smb::auth
