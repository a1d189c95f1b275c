#pragma once

#include <string_view>

#include "sluice/smb/auth/secret.hpp"
#include "sluice/smb/wire/decode_error.hpp"

namespace sluice::smb::auth {

/// What a server keeps instead of a password: the MD4 of its UTF-16LE spelling ([MS-NLMP] 3.3.1, NTOWFv1).
/// As good as the password to whoever wants to log on, so it is kept like one: never printed, wiped when
/// destroyed. Thread safety: a value.
class nt_hash {
public:
    /// Of a password in UTF-8. Errors: `bad_text` if it is not. Allocates: a buffer, wiped again.
    [[nodiscard]] static wire::decoded<nt_hash> of_password(std::string_view utf8) noexcept;
    /// As it was stored.
    explicit nt_hash(secret_bytes<16> stored) noexcept : bytes_(std::move(stored)) {}

    [[nodiscard]] nt_hash copy() const noexcept { return nt_hash(bytes_.copy()); }
    [[nodiscard]] bytes_view view() const noexcept { return bytes_.view(); }

private:
    secret_bytes<16> bytes_;
};

}  // namespace sluice::smb::auth
