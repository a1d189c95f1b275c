#pragma once

#include <array>
#include <memory>

#include "sluice/smb/auth/cipher/cipher_context.hpp"
#include "sluice/smb/auth/cipher/gcm_batches.hpp"

namespace sluice::smb::auth::detail {

class wide_gcm;

/// AES-GCM with nonces of 12 bytes. It uses wide_gcm if the CPU has the instructions that make it
/// faster, and OpenSSL otherwise.
///
/// For each message call start(), authenticate() for data that are not encrypted, pass() for data
/// that are, then tag() or has_tag(). Thread safety: one thread at a time. Allocates: only in
/// create().
class gcm {
public:
    using tag_type = std::array<std::byte, 16>;

    gcm() noexcept;
    gcm(gcm&& other) noexcept;
    gcm& operator=(gcm&& other) noexcept;
    ~gcm();

    /// Creates a cipher. `key` has 16 or 32 bytes. `by` processes complete batches; if it is null,
    /// OpenSSL does everything. Errors: those of start_cipher().
    [[nodiscard]] static result<gcm> create(bytes_view key, cipher_direction direction,
                                            const gcm_batches* by = gcm_batches::widest()) noexcept;

    void start(bytes_view nonce) noexcept;
    void authenticate(bytes_view part) noexcept;
    /// Encrypts or decrypts into `out`, which is as long as `in` and either equal to it or
    /// disjoint.
    void pass(bytes_view in, std::byte* out) noexcept;
    /// Returns the tag of the encrypted message and ends it.
    [[nodiscard]] tag_type tag() noexcept;
    /// Returns whether that is the tag of the decrypted message, and ends it. In constant time.
    [[nodiscard]] bool has_tag(const tag_type& claimed) noexcept;

private:
    std::unique_ptr<wide_gcm> wide_;
    cipher_context openssl_;  // null if wide_ is used
    cipher_direction direction_ = cipher_direction::encrypt;
};

}  // namespace sluice::smb::auth::detail
