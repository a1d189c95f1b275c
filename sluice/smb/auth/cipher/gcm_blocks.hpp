#pragma once

#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>

namespace sluice::smb::auth::detail {

// GCM's arithmetic on single blocks, in registers of 128 bits: for every CPU with any of the
// instructions, and small enough to be inlined into functions for wider registers.
#define SLUICE_GCM_BLOCK __attribute__((target("avx2,aes,pclmul")))

// The field's polynomial in the form of a reduction: the value of x^128, and one to carry from half
// to half.
SLUICE_GCM_BLOCK inline __m128i polynomial() noexcept {
    return _mm_set_epi64x(static_cast<long long>(0xc200'0000'0000'0000), 1);
}
SLUICE_GCM_BLOCK inline __m128i load(const std::byte* from) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
SLUICE_GCM_BLOCK inline void store(std::byte* to, __m128i what) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), what);
}
SLUICE_GCM_BLOCK inline __m128i byte_order() noexcept {  // a shuffle that reverses the bytes
    return _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
SLUICE_GCM_BLOCK inline __m128i reversed(__m128i bytes) noexcept {
    return _mm_shuffle_epi8(bytes, byte_order());
}
SLUICE_GCM_BLOCK inline __m128i swapped_halves(__m128i of) noexcept {
    return _mm_shuffle_epi32(of, 0x4e);
}

// Reduces a product of 256 bits to 128 bits in two foldings of 64 bits each. `middle` is the
// product of the sums of the halves: Karatsuba's method needs three multiplications instead of
// four. The result lacks a factor x, which the stored keys contain additionally.
SLUICE_GCM_BLOCK inline __m128i reduced(__m128i low, __m128i middle, __m128i high) noexcept {
    const __m128i sum = _mm_xor_si128(middle, _mm_xor_si128(low, high));
    const __m128i once =
        _mm_xor_si128(sum, _mm_xor_si128(swapped_halves(low), _mm_clmulepi64_si128(polynomial(), low, 0x01)));
    return _mm_xor_si128(high,
                         _mm_xor_si128(swapped_halves(once), _mm_clmulepi64_si128(polynomial(), once, 0x01)));
}

}  // namespace sluice::smb::auth::detail
#endif
