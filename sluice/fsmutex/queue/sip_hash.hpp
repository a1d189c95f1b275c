#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/bytes.hpp"

namespace sluice::fsmutex {

/// The key of a keyed hash.
struct sip_key {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

/// Returns SipHash-2-4 of `data` (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012):
/// 64 bits, the same on every machine. Complexity: linear. Allocates: nothing. Thread safety: any
/// thread.
[[nodiscard]] std::uint64_t sip_hash_64(bytes_view data, sip_key key = {}) noexcept;

/// The same with 128 bits, the lower ones first.
[[nodiscard]] std::array<std::uint64_t, 2> sip_hash_128(bytes_view data, sip_key key = {}) noexcept;

}  // namespace sluice::fsmutex
