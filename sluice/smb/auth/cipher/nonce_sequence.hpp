#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "sluice/base/endian.hpp"

namespace sluice::smb::auth {

/// The nonce field of an SMB2 transform header ([MS-SMB2] 2.2.41). CCM uses its first 11 bytes, GCM
/// its first 12; the rest is zero.
struct transform_nonce {
    le64 counter;                         //  0
    std::array<std::uint8_t, 3> lane{};   //  8
    std::array<std::uint8_t, 5> zeros{};  // 11
};
static_assert(sizeof(transform_nonce) == 16 and alignof(transform_nonce) == 1);
static_assert(offsetof(transform_nonce, lane) == 8 and offsetof(transform_nonce, zeros) == 11);
static_assert(std::is_trivially_copyable_v<transform_nonce>);

/// A sequence of nonces without repetitions, also among different lanes. It counts instead of using
/// random numbers, because eleven random bytes collide too soon, and one collision reveals the key
/// of GCM's tag. Thread safety: none of its own; each sealer has its own lane. Allocates: nothing.
class nonce_sequence {
public:
    struct options {
        std::uint32_t lane = 0;   // less than limits::sealers_per_key_max
        std::uint64_t start = 0;  // any number; the counter continues from there and wraps around
        std::uint64_t count_max = std::numeric_limits<std::uint64_t>::max();
    };
    explicit nonce_sequence(const options& how) noexcept;

    /// Returns the next nonce; std::nullopt after the last one, when the key must not encrypt any
    /// more.
    [[nodiscard]] std::optional<transform_nonce> next() noexcept;

private:
    transform_nonce nonce_;
    std::uint64_t left_;
};

}  // namespace sluice::smb::auth
