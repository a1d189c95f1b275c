#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "sluice/base/bytes.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/result.hpp"
#include "sluice/smb/auth/cipher/gcm.hpp"
#include "sluice/smb/auth/cipher/nonce_observer.hpp"
#include "sluice/smb/auth/cipher/nonce_sequence.hpp"
#include "sluice/smb/auth/key_derivation.hpp"

namespace sluice::smb::auth {

namespace detail {

/// The cipher of one direction. One of its members is present.
struct message_cipher {
    gcm by_gcm{};
    cipher_context by_ccm{};
};

}  // namespace detail

/// An encryptor of messages. A sealing_key creates it, so that no two have a nonce in common.
///
/// A channel has its own. Thread safety: none of its own. Allocates: nothing.
class sealer {
public:
    /// Writes the transform header and the encrypted message into `sealed`, which is exactly as
    /// long as both. The message consists of consecutive `parts` and is not empty. A part is either
    /// outside of `sealed`, or at the position of its encrypted bytes, for example because the
    /// message was assembled there.
    ///
    /// GCM encrypts every part directly into place. CCM requires contiguous bytes, so several parts
    /// are copied together first.
    /// Errors: `message_size` above limits::sealed_message_bytes_max; `value_too_large` if all
    /// nonces of this sealer are used: the session must end. In case of an error nothing is
    /// written.
    [[nodiscard]] result<void> seal(std::uint64_t session_id, std::span<const bytes_view> parts,
                                    mutable_bytes sealed) noexcept;

private:
    friend class sealing_key;
    sealer(detail::message_cipher cipher, const cipher_key& key, nonce_sequence nonces) noexcept
        : cipher_(std::move(cipher)),
          algorithm_(key.algorithm()),
          nonces_(nonces),
          fingerprint_(fingerprint_of(key.view(), static_cast<std::uint16_t>(key.algorithm()))) {}

    detail::message_cipher cipher_;
    cipher_algorithm algorithm_;
    nonce_sequence nonces_;
    key_fingerprint fingerprint_;
};

/// A decryptor of messages. A channel has its own. Thread safety: none of its own. Allocates: only
/// in create().
class opener {
public:
    /// Errors: `not_supported` if this OpenSSL lacks the cipher, `not_enough_memory`.
    [[nodiscard]] static result<opener> create(const cipher_key& key) noexcept;

    /// Decrypts into `message`, which is exactly as long as all encrypted `parts`. `header` is the
    /// transform header as received, with which the caller looked up the session. A part is either
    /// outside of `message` or at the position of its decrypted bytes.
    ///
    /// Returns false if the message is not authentic or the header contradicts its length.
    /// `message` is then zero, so that forged bytes are not exposed.
    [[nodiscard]] bool open(bytes_view header, std::span<const bytes_view> parts,
                            mutable_bytes message) noexcept;

private:
    opener(detail::message_cipher cipher, cipher_algorithm algorithm) noexcept
        : cipher_(std::move(cipher)), algorithm_(algorithm) {}

    detail::message_cipher cipher_;
    cipher_algorithm algorithm_;
};

/// A session's key for one direction, from which every channel gets a sealer. All channels share
/// the key ([MS-SMB2] 3.3.5.5.3), so they share its nonces. Each sealer has its own range of
/// nonces, so that channels need no synchronisation.
///
/// Invariant: no lane is assigned twice.
/// Thread safety: make_sealer() from any thread. Neither copied nor moved, because that would
/// repeat nonces.
class sealing_key {
public:
    explicit sealing_key(cipher_key key) noexcept : key_(std::move(key)) {}
    sealing_key(const sealing_key&) = delete;
    sealing_key& operator=(const sealing_key&) = delete;

    /// Creates a sealer. Errors: as opener::create; `value_too_large` after
    /// limits::sealers_per_key_max of them. Allocates: the sealer's context. `random` selects the
    /// start of its counter, so that even a key that was generated twice is unlikely to repeat
    /// nonces.
    [[nodiscard]] result<sealer> make_sealer(secret_random_source& random) noexcept;

private:
    cipher_key key_;
    std::atomic<std::uint32_t> lanes_used_{0};
};

}  // namespace sluice::smb::auth
