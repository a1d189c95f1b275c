#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::smb::auth {

/// The keyed hash of RFC 2104 with SHA-256, to be used again and again with one key.
///
/// Keeps the hash's state behind the key, so that a message does not pay for it: OpenSSL's own HMAC
/// duplicates a context, and so allocates, for every message. Thread safety: code() from any thread.
/// Allocates: nothing.
class hmac_sha256 {
public:
    /// A key longer than a block of 64 bytes counts as its hash.
    explicit hmac_sha256(bytes_view key) noexcept;

    /// The code of the parts, one after another.
    [[nodiscard]] secret_bytes<32> code(std::span<const bytes_view> parts) const noexcept;

private:
    static constexpr std::size_t state_bytes = 112;  // SHA256_CTX of OpenSSL, whose headers stay out of ours
    secret_bytes<state_bytes> inner_;
    secret_bytes<state_bytes> outer_;
};

// NTLMv2 is built of MD5. An OpenSSL that allows approved algorithms alone has none, and then there is no
// NTLM either; all else works.

/// Can this OpenSSL compute MD5 at all?
[[nodiscard]] bool has_md5() noexcept;

/// The HMAC-MD5 of the parts, one after another, and their plain MD5. Require has_md5().
/// Allocates: a context, freed again.
[[nodiscard]] secret_bytes<16> hmac_md5(bytes_view key, std::span<const bytes_view> parts) noexcept;
[[nodiscard]] secret_bytes<16> md5(std::span<const bytes_view> parts) noexcept;

}  // namespace sluice::smb::auth
