#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/auth/preauth_integrity.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::smb::auth {

/// The purpose of a derived key. It makes the key different from others derived from the same
/// secret.
struct derivation_purpose {
    bytes_view label;
    bytes_view context;
};

/// Derives `derived.size()` bytes from `key` by SP 800-108 in counter mode with HMAC-SHA256, a
/// 32-bit counter before and the length after the input ([MS-SMB2] 3.1.4.2). Terminating zeros are
/// part of label and context.
/// Allocates: nothing.
void derive_key(bytes_view key, const derivation_purpose& purpose, mutable_bytes derived) noexcept;

/// The ciphers of SMB 3, with their numbers in SMB2_ENCRYPTION_CAPABILITIES ([MS-SMB2] 2.2.3.1.2).
enum class cipher_algorithm : std::uint16_t {
    aes_128_ccm = 1,
    aes_128_gcm = 2,
    aes_256_ccm = 3,
    aes_256_gcm = 4,
};

/// The key of a cipher: 16 or 32 bytes.
class cipher_key {
public:
    static constexpr std::size_t bytes_max = 32;

    explicit cipher_key(cipher_algorithm algorithm) noexcept : algorithm_(algorithm) {}
    /// `key` has size_for(algorithm) bytes.
    cipher_key(cipher_algorithm algorithm, bytes_view key) noexcept;

    [[nodiscard]] static constexpr std::size_t size_for(cipher_algorithm algorithm) noexcept {
        return algorithm == cipher_algorithm::aes_256_ccm or algorithm == cipher_algorithm::aes_256_gcm ? 32
                                                                                                        : 16;
    }
    [[nodiscard]] cipher_algorithm algorithm() const noexcept { return algorithm_; }
    [[nodiscard]] bytes_view view() const noexcept { return *bytes_.view().first(size_for(algorithm_)); }
    [[nodiscard]] mutable_bytes mutable_view() noexcept {
        return *bytes_.mutable_view().first(size_for(algorithm_));
    }
    [[nodiscard]] cipher_key copy() const noexcept { return {algorithm_, view()}; }

private:
    cipher_algorithm algorithm_;
    secret_bytes<bytes_max> bytes_;
};

/// The keys of a session, or of a further channel (which uses only `signing`).
struct session_keys {
    secret_bytes<16> signing;
    cipher_key client_to_server;  // the client encrypts with it, the server decrypts
    cipher_key server_to_client;
    secret_bytes<16> application;
};

/// The inputs for the keys of an SMB 3 session.
struct session_key_material {
    /// The complete key of the authentication: 16 bytes for NTLM, up to 32 for Kerberos. A shorter
    /// one is padded with zeros to 16.
    bytes_view full_session_key;
    /// The negotiated cipher of the connection; before 3.1.1 always aes_128_ccm.
    cipher_algorithm cipher = cipher_algorithm::aes_128_ccm;
    /// The hash of this session setup, with SMB 3.1.1. Without it, the keys of SMB 3.0 and 3.0.2
    /// are derived.
    std::optional<preauth_integrity::value_type> preauth_hash;
};

/// Derives the keys of an SMB 3 session ([MS-SMB2] 3.3.5.5.3). Signing and application keys come
/// from the first 16 bytes of the session key and have 128 bits with every cipher. The keys of a
/// 256-bit cipher come from the complete session key. SMB 2.0.2 and 2.1 derive nothing: the session
/// key itself signs.
/// Allocates: nothing.
[[nodiscard]] session_keys derive_session_keys(const session_key_material& from) noexcept;

}  // namespace sluice::smb::auth
