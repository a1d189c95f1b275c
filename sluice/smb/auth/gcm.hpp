#pragma once

#include <array>
#include <memory>

#include "sluice/smb/auth/cipher_context.hpp"
#include "sluice/smb/auth/gcm_batches.hpp"

namespace sluice::smb::auth::detail {

class wide_gcm;

/// AES-GCM with nonces of 12 bytes: by our own code where the processor has the instructions that make it
/// faster (wide_gcm), by OpenSSL elsewhere.
///
/// One message after another: start(), authenticate() what is not enciphered, pass() what is, then tag() or
/// has_tag(). Thread safety: one thread at a time. Allocates: only in create().
class gcm {
public:
    using tag_type = std::array<std::byte, 16>;

    gcm() noexcept;
    gcm(gcm&& other) noexcept;
    gcm& operator=(gcm&& other) noexcept;
    ~gcm();

    /// `key` has 16 or 32 bytes. `by` is what does whole batches; if null, OpenSSL does everything. Errors:
    /// those of start_cipher().
    [[nodiscard]] static result<gcm> create(bytes_view key, cipher_direction direction,
                                            const gcm_batches* by = gcm_batches::widest()) noexcept;

    void start(bytes_view nonce) noexcept;
    void authenticate(bytes_view part) noexcept;
    /// Enciphers or deciphers into `out`, which has as much room and is `in` itself or apart from it.
    void pass(bytes_view in, std::byte* out) noexcept;
    /// Of what was enciphered; ends the message.
    [[nodiscard]] tag_type tag() noexcept;
    /// Whether that is the tag of what was deciphered; ends the message. In constant time.
    [[nodiscard]] bool has_tag(const tag_type& claimed) noexcept;

private:
    std::unique_ptr<wide_gcm> wide_;
    cipher_context openssl_;  // null if that is there
    cipher_direction direction_ = cipher_direction::encrypt;
};

}  // namespace sluice::smb::auth::detail
