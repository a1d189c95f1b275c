#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth::detail {

inline constexpr std::size_t gcm_block_bytes = 16;

/// The number of stored powers of the hash key. One reduction can hash as many blocks.
inline constexpr std::size_t gcm_powers = 32;

/// The largest length of a batch.
inline constexpr std::size_t gcm_batch_bytes_max = gcm_powers * gcm_block_bytes;

/// The values derived from a key, in the byte order of the batches.
struct gcm_keys {
    const std::byte* round_keys;  ///< `rounds` + 1 of them
    unsigned rounds;
    const std::byte* powers;  ///< powers of the hash key H: H^32 first, H last; each times x
    const std::byte* folded;  ///< for each power the sum of its halves, twice
};

/// The position in the key stream: the nonce, and the number of the next block.
struct gcm_counter {
    const std::byte* nonce;  ///< 16 bytes, of which the last 4 are ignored
    std::uint32_t next;
};

/// AES-GCM of complete batches: eight registers of one width, which are encrypted in parallel and
/// hashed by one reduction. `sum` is the hash so far: 16 bytes. Thread safety: any. Allocates:
/// nothing.
struct gcm_batches {
    std::size_t bytes;  ///< length of a batch
    void (*hash)(std::byte* sum, const gcm_keys& keys, const std::byte* from, std::size_t batches) noexcept;
    /// Writes one batch of the key stream, which is added to plaintext or ciphertext.
    void (*key_stream)(const gcm_keys& keys, gcm_counter at, std::byte* to) noexcept;
    /// Processes `from` into `to`, which is equal to it or disjoint. The ciphertext is added to the
    /// sum.
    void (*encrypt)(std::byte* sum, const gcm_keys& keys, gcm_counter at, bytes_view from,
                    std::byte* to) noexcept;
    void (*decrypt)(std::byte* sum, const gcm_keys& keys, gcm_counter at, bytes_view from,
                    std::byte* to) noexcept;

    /// Returns the implementation for two blocks per instruction: VAES and VPCLMULQDQ with AVX2.
    /// Returns null if the CPU lacks them.
    [[nodiscard]] static const gcm_batches* by_two() noexcept;
    /// Returns the implementation for four blocks per instruction: with AVX-512.
    [[nodiscard]] static const gcm_batches* by_four() noexcept;
    /// Returns the widest available implementation.
    [[nodiscard]] static const gcm_batches* widest() noexcept {
        return by_four() != nullptr ? by_four() : by_two();
    }
};

}  // namespace sluice::smb::auth::detail
