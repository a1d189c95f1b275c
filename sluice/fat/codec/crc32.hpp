#pragma once

#include <cstdint>

#include "sluice/base/bytes.hpp"

namespace sluice::fat {

/// The CRC of GPT (UEFI 2.10, 5.3.1; that of zip and Ethernet). To go on with more bytes give the value so
/// far as `before`. Allocates: nothing. Complexity: linear.
[[nodiscard]] std::uint32_t crc32(bytes_view bytes, std::uint32_t before = 0) noexcept;

}  // namespace sluice::fat
