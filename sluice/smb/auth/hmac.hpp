#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::smb::auth {

/// The keyed hash of RFC 2104 with SHA-256, for repeated use with one key.
///
/// It stores the state of the hash after the key, so that messages do not compute it again.
/// OpenSSL's own HMAC duplicates a context, and thus allocates, for every message. Thread safety:
/// code() from any thread. Allocates: nothing.
class hmac_sha256 {
public:
    /// Constructs a hash with a key. A key longer than a block of 64 bytes is replaced by its hash.
    explicit hmac_sha256(bytes_view key) noexcept;

    /// Returns the code of the concatenated parts.
    [[nodiscard]] secret_bytes<32> code(std::span<const bytes_view> parts) const noexcept;

private:
    static constexpr std::size_t state_bytes =
        112;  // SHA256_CTX of OpenSSL, whose headers are not included here
    secret_bytes<state_bytes> inner_;
    secret_bytes<state_bytes> outer_;
};

// NTLMv2 is based on MD5. An OpenSSL that allows only approved algorithms does not have it, and
// then NTLM is unavailable; everything else works.

/// Returns whether this OpenSSL can compute MD5.
[[nodiscard]] bool has_md5() noexcept;

/// Return the HMAC-MD5 of the concatenated parts, and their plain MD5. Require has_md5().
/// Allocates: a context, which is freed again.
[[nodiscard]] secret_bytes<16> hmac_md5(bytes_view key, std::span<const bytes_view> parts) noexcept;
[[nodiscard]] secret_bytes<16> md5(std::span<const bytes_view> parts) noexcept;

}  // namespace sluice::smb::auth
