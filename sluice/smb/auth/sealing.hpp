#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "sluice/base/bytes.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/result.hpp"
#include "sluice/smb/auth/gcm.hpp"
#include "sluice/smb/auth/key_derivation.hpp"
#include "sluice/smb/auth/nonce_sequence.hpp"
#include "sluice/smb/auth/nonce_witness.hpp"

namespace sluice::smb::auth {

namespace detail {

/// What enciphers one direction: one of the two is there.
struct message_cipher {
    gcm by_gcm{};
    cipher_context by_ccm{};
};

}  // namespace detail

/// Encrypts messages. Made by a sealing_key, so that no two have nonces in common.
///
/// A channel has its own. Thread safety: none of its own. Allocates: nothing.
class sealer {
public:
    /// Writes the transform header and the encrypted message into `sealed`, which is exactly as long as both.
    /// The message stands in `parts`, one after another, and is not empty. A part lies either outside of
    /// `sealed` or just where its encrypted bytes go, as when a message was put together there.
    ///
    /// GCM encrypts every part straight into its place. CCM wants the message in one piece, so with more
    /// than one part they are copied together first.
    /// Errors: `message_size` above limits::sealed_message_bytes_max; `value_too_large` once all nonces of
    /// this sealer are used: the session must end. Then nothing was written.
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

/// Decrypts messages. A channel has its own. Thread safety: none of its own. Allocates: only in create().
class opener {
public:
    /// Errors: `not_supported` if this OpenSSL lacks the cipher, `not_enough_memory`.
    [[nodiscard]] static result<opener> create(const cipher_key& key) noexcept;

    /// Decrypts into `message`, which is exactly as long as all `parts` of the encrypted bytes. `header` is
    /// the transform header as it came, found by whoever looked up the session. A part lies outside of
    /// `message` or just where its plain bytes go.
    ///
    /// False if the message is not authentic or the header contradicts its length, and then `message` is
    /// zero: nobody gets to see what an attacker made.
    [[nodiscard]] bool open(bytes_view header, std::span<const bytes_view> parts,
                            mutable_bytes message) noexcept;

private:
    opener(detail::message_cipher cipher, cipher_algorithm algorithm) noexcept
        : cipher_(std::move(cipher)), algorithm_(algorithm) {}

    detail::message_cipher cipher_;
    cipher_algorithm algorithm_;
};

/// A session's key for one direction, from which every channel gets a sealer. All channels share the key
/// ([MS-SMB2] 3.3.5.5.3), so they must share the nonces as well; here each sealer gets a part of its own, and
/// channels need not wait for one another.
///
/// Invariant: no lane is given out twice.
/// Thread safety: make_sealer() from any thread. Neither copied nor moved, as that would repeat nonces.
class sealing_key {
public:
    explicit sealing_key(cipher_key key) noexcept : key_(std::move(key)) {}
    sealing_key(const sealing_key&) = delete;
    sealing_key& operator=(const sealing_key&) = delete;

    /// Errors: as opener::create; `value_too_large` after limits::sealers_per_key_max of them.
    /// Allocates: the sealer's context. `random` says where its counter starts, so that even a key that came
    /// up twice would hardly meet the same nonces.
    [[nodiscard]] result<sealer> make_sealer(secret_random_source& random) noexcept;

private:
    cipher_key key_;
    std::atomic<std::uint32_t> lanes_used_{0};
};

}  // namespace sluice::smb::auth
