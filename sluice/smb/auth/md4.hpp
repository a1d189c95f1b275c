#pragma once

#include <array>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth {

/// MD4 of `message` (RFC 1320). Broken as a hash; here only because an NT hash is one, and home-made because
/// OpenSSL 3 hides it in a provider that distributions leave out. Allocates: nothing. Complexity: linear.
[[nodiscard]] std::array<std::byte, 16> md4(bytes_view message) noexcept;

}  // namespace sluice::smb::auth
