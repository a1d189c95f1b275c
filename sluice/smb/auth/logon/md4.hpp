#pragma once

#include <array>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth {

/// Returns the MD4 of `message` (RFC 1320). MD4 is broken as a hash and only used because an NT
/// hash is one. It is implemented here because OpenSSL 3 has it in a provider that distributions do
/// not install. Allocates: nothing. Complexity: linear.
[[nodiscard]] std::array<std::byte, 16> md4(bytes_view message) noexcept;

}  // namespace sluice::smb::auth
