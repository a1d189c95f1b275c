#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"
#include "sluice/smb/auth/gcm_batches.hpp"

namespace sluice::smb::auth::detail {

/// AES-GCM with nonces of 12 bytes for processors that do two or four blocks by one instruction (VAES and
/// VPCLMULQDQ, with AVX2 or AVX-512), where OpenSSL 3.0 does one.
///
/// One message after another: start(), then what is only authenticated, then what is encrypted or decrypted,
/// in parts of any length, then tag(). In constant time: AES and the carry-less product are instructions, and
/// nothing is looked up in tables. Thread safety: one thread at a time. Allocates: nothing. The key, and all
/// that follows from it, is wiped when it goes. Source: NIST SP 800-38D; the arithmetic is explained in
/// docs/algorithms/data-path.md.
class wide_gcm {
public:
    using block = std::array<std::byte, 16>;

    /// `key` has 16 or 32 bytes; `by` does what comes in whole batches.
    wide_gcm(bytes_view key, const gcm_batches& by) noexcept;
    wide_gcm(const wide_gcm&) = default;
    wide_gcm& operator=(const wide_gcm&) = default;
    ~wide_gcm();

    /// Begins a message. `nonce` has 12 bytes, and none is used twice with a key.
    void start(bytes_view nonce) noexcept;
    void authenticate(bytes_view part) noexcept;
    /// Into `to`, which has as much room and is `from` itself or apart from it.
    void encrypt(bytes_view from, std::byte* to) noexcept;
    void decrypt(bytes_view from, std::byte* to) noexcept;
    /// Of the whole message; ends it.
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

    block sum_{};  // of what was hashed, in the order of bits that products have
    block first_counter_{};
    std::uint32_t counter_ = 0;  // of the next block of the key stream
    block key_stream_{};         // of a block that is not whole yet
    block partial_{};            // what is not a whole block yet, to be hashed
    std::size_t partial_bytes_ = 0;
    std::uint64_t authenticated_bytes_ = 0;
    std::uint64_t ciphered_bytes_ = 0;
};

}  // namespace sluice::smb::auth::detail
