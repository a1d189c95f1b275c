#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth::detail {

inline constexpr std::size_t gcm_block_bytes = 16;

/// Powers of the hash key that are kept: as many blocks can be hashed by one reduction.
inline constexpr std::size_t gcm_powers = 32;

/// A batch has no more bytes than this.
inline constexpr std::size_t gcm_batch_bytes_max = gcm_powers * gcm_block_bytes;

/// What follows from a key, in the order of bytes in which the batches want it.
struct gcm_keys {
    const std::byte* round_keys;  ///< `rounds` + 1 of them
    unsigned rounds;
    const std::byte* powers;  ///< of the hash key H: H^32 first, H last; each times x
    const std::byte* folded;  ///< of each power the sum of its halves, twice
};

/// Where the key stream stands: the nonce, and the number of the block that is next.
struct gcm_counter {
    const std::byte* nonce;  ///< 16 bytes, of which the last 4 do not matter
    std::uint32_t next;
};

/// AES-GCM of whole batches: eight registers of one width, which go through the cipher side by side and are
/// hashed by one reduction. `sum` is the hash so far: 16 bytes. Thread safety: any. Allocates: nothing.
struct gcm_batches {
    std::size_t bytes;  ///< of a batch
    void (*hash)(std::byte* sum, const gcm_keys& keys, const std::byte* from, std::size_t batches) noexcept;
    /// One batch of what is added to plain or enciphered text.
    void (*key_stream)(const gcm_keys& keys, gcm_counter at, std::byte* to) noexcept;
    /// Into `to`, which is `from` itself or apart from it; the sum takes in what is enciphered.
    void (*encrypt)(std::byte* sum, const gcm_keys& keys, gcm_counter at, bytes_view from,
                    std::byte* to) noexcept;
    void (*decrypt)(std::byte* sum, const gcm_keys& keys, gcm_counter at, bytes_view from,
                    std::byte* to) noexcept;

    /// Two blocks by one instruction: VAES and VPCLMULQDQ with AVX2. Null where the processor lacks them.
    [[nodiscard]] static const gcm_batches* by_two() noexcept;
    /// Four: with AVX-512.
    [[nodiscard]] static const gcm_batches* by_four() noexcept;
    /// The wider of those that are there.
    [[nodiscard]] static const gcm_batches* widest() noexcept {
        return by_four() != nullptr ? by_four() : by_two();
    }
};

}  // namespace sluice::smb::auth::detail
