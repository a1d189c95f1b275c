#pragma once

#include <cstdint>

#include "sluice/base/bytes.hpp"

namespace sluice::fat {

/// Returns the CRC of GPT (UEFI 2.10, 5.3.1), which is that of zip and Ethernet. To continue with
/// more bytes, pass the value so far as `before`. Allocates: nothing. Complexity: linear.
[[nodiscard]] std::uint32_t crc32(bytes_view bytes, std::uint32_t before = 0) noexcept;

}  // namespace sluice::fat
