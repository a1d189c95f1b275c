#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth::detail {

/// AES-GCM with nonces of 12 bytes for processors that do two blocks by one instruction (VAES and VPCLMULQDQ
/// with AVX2): nearly twice as fast there as OpenSSL 3.0, which has such code for AVX-512 only.
///
/// One message after another: start(), then what is only authenticated, then what is encrypted or decrypted,
/// in parts of any length, then tag(). In constant time: AES and the carry-less product are instructions, and
/// nothing is looked up in tables. Thread safety: one thread at a time. Allocates: nothing. The key, and all
/// that follows from it, is wiped when it goes. Source: NIST SP 800-38D; the arithmetic is explained in
/// docs/algorithms/data-path.md.
class wide_gcm {
public:
    using block = std::array<std::byte, 16>;

    /// Whether this processor has the instructions; without, OpenSSL has to do.
    [[nodiscard]] static bool is_available() noexcept;

    /// `key` has 16 or 32 bytes. Only where it is available.
    explicit wide_gcm(bytes_view key) noexcept;
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
    static constexpr std::size_t powers = 16;  // blocks that are hashed by one reduction

    template <bool Encrypts>
    void pass(bytes_view from, std::byte* to) noexcept;
    template <bool Encrypts>
    void pass_bytes(bytes_view from, std::byte* to) noexcept;
    void hash_bytes(bytes_view part) noexcept;
    void end_part() noexcept;
    [[nodiscard]] block key_stream() noexcept;

    std::array<block, rounds_max + 1> round_keys_{};
    std::array<block, powers> hash_keys_{};  // H^16 first, H last; each times x
    std::array<block, powers> folded_{};     // of each the two halves' sum, twice
    unsigned rounds_ = 0;

    block sum_{};  // of what was hashed, in the order of bits that products have
    block first_counter_{};
    std::uint32_t counter_ = 0;  // of the next block of the key stream
    block key_stream_{};         // of the block that is not whole yet
    block partial_{};            // what is not a whole block yet, to be hashed
    std::size_t partial_bytes_ = 0;
    std::uint64_t authenticated_bytes_ = 0;
    std::uint64_t ciphered_bytes_ = 0;
};

}  // namespace sluice::smb::auth::detail
