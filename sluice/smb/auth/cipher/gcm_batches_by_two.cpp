// Registers of 256 bits.
#include "sluice/smb/auth/cipher/gcm_batches.hpp"
#include "sluice/smb/auth/cipher/gcm_blocks.hpp"

namespace sluice::smb::auth::detail {

#if defined(__x86_64__)
#define SLUICE_GCM_TARGET __attribute__((target("avx2,aes,vaes,pclmul,vpclmulqdq")))

namespace {

using lanes = __m256i;
constexpr std::size_t lanes_blocks = 2;

SLUICE_GCM_TARGET lanes load_lanes(const std::byte* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
SLUICE_GCM_TARGET void store_lanes(std::byte* to, lanes what) noexcept {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), what);
}
SLUICE_GCM_TARGET lanes everywhere(__m128i block) noexcept {
    return _mm256_broadcastsi128_si256(block);
}
SLUICE_GCM_TARGET lanes with_first(__m128i block) noexcept {
    return _mm256_zextsi128_si256(block);
}
SLUICE_GCM_TARGET __m128i sum_of(lanes all) noexcept {
    return _mm_xor_si128(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}
SLUICE_GCM_TARGET lanes plus(lanes a, lanes b) noexcept {
    return _mm256_xor_si256(a, b);
}
SLUICE_GCM_TARGET lanes each_reversed(lanes bytes) noexcept {
    return _mm256_shuffle_epi8(bytes, everywhere(byte_order()));
}
SLUICE_GCM_TARGET lanes halves_swapped(lanes of) noexcept {
    return _mm256_shuffle_epi32(of, 0x4e);
}
SLUICE_GCM_TARGET lanes low_product(lanes a, lanes b) noexcept {
    return _mm256_clmulepi64_epi128(a, b, 0x00);
}
SLUICE_GCM_TARGET lanes high_product(lanes a, lanes b) noexcept {
    return _mm256_clmulepi64_epi128(a, b, 0x11);
}
SLUICE_GCM_TARGET lanes cipher_round(lanes state, lanes key) noexcept {
    return _mm256_aesenc_epi128(state, key);
}
SLUICE_GCM_TARGET lanes last_round(lanes state, lanes key) noexcept {
    return _mm256_aesenclast_epi128(state, key);
}
// Counters are big-endian, after the nonce. Here they are in the CPU's byte order, as is the nonce.
SLUICE_GCM_TARGET lanes numbered(__m128i nonce, std::uint32_t from) noexcept {
    const auto n = static_cast<int>(from);
    return _mm256_blend_epi32(everywhere(nonce), _mm256_set_epi32(0, 0, 0, n + 1, 0, 0, 0, n), 0x11);
}
SLUICE_GCM_TARGET lanes next_numbers(lanes of) noexcept {
    return _mm256_add_epi32(of, _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 2));
}

#include "sluice/smb/auth/cipher/gcm_batches.inc"

}  // namespace

const gcm_batches* gcm_batches::by_two() noexcept {
    const bool is_there = __builtin_cpu_supports("avx2") and __builtin_cpu_supports("aes") and
                          __builtin_cpu_supports("vaes") and __builtin_cpu_supports("pclmul") and
                          __builtin_cpu_supports("vpclmulqdq");
    return is_there ? &these : nullptr;
}
#else
const gcm_batches* gcm_batches::by_two() noexcept {
    return nullptr;
}
#endif

}  // namespace sluice::smb::auth::detail
