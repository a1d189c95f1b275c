#pragma once

#include <cstdint>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::server {

/// Returns the CRC-32C (RFC 3720, 12.1), which processors have an instruction for. To continue with
/// more bytes, pass the value so far as `before`. Allocates: nothing. Complexity: linear.
[[nodiscard]] std::uint32_t crc32c(bytes_view bytes, std::uint32_t before = 0) noexcept;

}  // namespace sluice::smb::server
