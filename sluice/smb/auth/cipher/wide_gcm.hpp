#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/auth/cipher/gcm_batches.hpp"

namespace sluice::smb::auth::detail {

/// AES-GCM with nonces of 12 bytes for CPUs that process two or four blocks per instruction (VAES
/// and VPCLMULQDQ, with AVX2 or AVX-512). OpenSSL 3.0 processes one.
///
/// For each message call start(), then authenticate() for associated data, then encrypt() or
/// decrypt() for the message, in parts of any length, then tag(). It runs in constant time, because
/// AES and the carry-less product are instructions, without lookup tables. Thread safety: one
/// thread at a time. Allocates: nothing. The key and all values derived from it are wiped on
/// destruction. Source: NIST SP 800-38D. docs/algorithms/data-path.md explains the arithmetic.
class wide_gcm {
public:
    using block = std::array<std::byte, 16>;

    /// `key` has 16 or 32 bytes. `by` processes complete batches.
    wide_gcm(bytes_view key, const gcm_batches& by) noexcept;
    wide_gcm(const wide_gcm&) = default;
    wide_gcm& operator=(const wide_gcm&) = default;
    ~wide_gcm();

    /// Begins a message. `nonce` has 12 bytes and must not repeat with the same key.
    void start(bytes_view nonce) noexcept;
    void authenticate(bytes_view part) noexcept;
    /// Encrypts into `to`, which is as long as `from` and either equal to it or disjoint.
    void encrypt(bytes_view from, std::byte* to) noexcept;
    void decrypt(bytes_view from, std::byte* to) noexcept;
    /// Returns the tag of the complete message and ends it.
    [[nodiscard]] block tag() noexcept;

private:
    static constexpr std::size_t rounds_max = 14;

    template <bool Encrypts>
    void pass(bytes_view from, std::byte* to) noexcept;
    template <bool Encrypts>
    void pass_bytes(bytes_view from, std::byte* to) noexcept;
    template <bool Encrypts>
    void mix(bytes_view from, const std::byte* stream, std::byte* to) noexcept;
    void hash_bytes(bytes_view part) noexcept;
    void end_part() noexcept;
    [[nodiscard]] gcm_keys keys() const noexcept;

    const gcm_batches* by_;
    std::array<block, rounds_max + 1> round_keys_{};
    std::array<block, gcm_powers> hash_keys_{};
    std::array<block, gcm_powers> folded_{};
    unsigned rounds_ = 0;

    block sum_{};  // the hash so far, in the bit order of products
    block first_counter_{};
    std::uint32_t counter_ = 0;  // number of the next block of the key stream
    block key_stream_{};         // the rest of an incomplete block
    block partial_{};            // an incomplete block to be hashed
    std::size_t partial_bytes_ = 0;
    std::uint64_t authenticated_bytes_ = 0;
    std::uint64_t ciphered_bytes_ = 0;
};

}  // namespace sluice::smb::auth::detail
