// Registers of 512 bits.
#include "sluice/smb/auth/cipher/gcm_batches.hpp"
#include "sluice/smb/auth/cipher/gcm_blocks.hpp"

namespace sluice::smb::auth::detail {

#if defined(__x86_64__)
#define SLUICE_GCM_TARGET __attribute__((target("avx2,aes,vaes,pclmul,vpclmulqdq,avx512f,avx512bw")))

namespace {

using lanes = __m512i;
constexpr std::size_t lanes_blocks = 4;

SLUICE_GCM_TARGET lanes load_lanes(const std::byte* from) noexcept {
    return _mm512_loadu_si512(from);
}
SLUICE_GCM_TARGET void store_lanes(std::byte* to, lanes what) noexcept {
    _mm512_storeu_si512(to, what);
}
SLUICE_GCM_TARGET lanes everywhere(__m128i block) noexcept {
    return _mm512_broadcast_i32x4(block);
}
SLUICE_GCM_TARGET lanes with_first(__m128i block) noexcept {
    return _mm512_zextsi128_si512(block);
}
SLUICE_GCM_TARGET __m128i sum_of(lanes all) noexcept {
    const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    return _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}
SLUICE_GCM_TARGET lanes plus(lanes a, lanes b) noexcept {
    return _mm512_xor_si512(a, b);
}
SLUICE_GCM_TARGET lanes each_reversed(lanes bytes) noexcept {
    return _mm512_shuffle_epi8(bytes, everywhere(byte_order()));
}
SLUICE_GCM_TARGET lanes halves_swapped(lanes of) noexcept {
    return _mm512_shuffle_epi32(of, static_cast<_MM_PERM_ENUM>(0x4e));
}
SLUICE_GCM_TARGET lanes low_product(lanes a, lanes b) noexcept {
    return _mm512_clmulepi64_epi128(a, b, 0x00);
}
SLUICE_GCM_TARGET lanes high_product(lanes a, lanes b) noexcept {
    return _mm512_clmulepi64_epi128(a, b, 0x11);
}
SLUICE_GCM_TARGET lanes cipher_round(lanes state, lanes key) noexcept {
    return _mm512_aesenc_epi128(state, key);
}
SLUICE_GCM_TARGET lanes last_round(lanes state, lanes key) noexcept {
    return _mm512_aesenclast_epi128(state, key);
}
// Counters are big-endian, after the nonce. Here they are in the CPU's byte order, as is the nonce.
SLUICE_GCM_TARGET lanes numbered(__m128i nonce, std::uint32_t from) noexcept {
    const auto n = static_cast<int>(from);
    const lanes numbers = _mm512_set_epi32(0, 0, 0, n + 3, 0, 0, 0, n + 2, 0, 0, 0, n + 1, 0, 0, 0, n);
    return _mm512_mask_mov_epi32(everywhere(nonce), 0x1111, numbers);
}
SLUICE_GCM_TARGET lanes next_numbers(lanes of) noexcept {
    return _mm512_add_epi32(of, _mm512_maskz_set1_epi32(0x1111, 4));
}

#include "sluice/smb/auth/cipher/gcm_batches.inc"

}  // namespace

const gcm_batches* gcm_batches::by_four() noexcept {
    const bool is_there =
        by_two() != nullptr and __builtin_cpu_supports("avx512f") and __builtin_cpu_supports("avx512bw");
    return is_there ? &these : nullptr;
}
#else
const gcm_batches* gcm_batches::by_four() noexcept {
    return nullptr;
}
#endif

}  // namespace sluice::smb::auth::detail
