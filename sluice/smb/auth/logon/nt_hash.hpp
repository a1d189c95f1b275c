#pragma once

#include <string_view>

#include "sluice/smb/auth/secret.hpp"
#include "sluice/smb/wire/decode_error.hpp"

namespace sluice::smb::auth {

/// The value that a server stores instead of a password: the MD4 of its UTF-16LE form ([MS-NLMP]
/// 3.3.1, NTOWFv1). It is equivalent to the password for a logon, so it is protected like one:
/// never printed, wiped when destroyed. Thread safety: a value.
class nt_hash {
public:
    /// Returns the hash of a password in UTF-8. Errors: `bad_text` if it is not UTF-8. Allocates: a
    /// buffer, which is wiped.
    [[nodiscard]] static wire::decoded<nt_hash> of_password(std::string_view utf8) noexcept;
    /// Constructs a stored hash.
    explicit nt_hash(secret_bytes<16> stored) noexcept : bytes_(std::move(stored)) {}

    [[nodiscard]] nt_hash copy() const noexcept { return nt_hash(bytes_.copy()); }
    [[nodiscard]] bytes_view view() const noexcept { return bytes_.view(); }

private:
    secret_bytes<16> bytes_;
};

}  // namespace sluice::smb::auth
