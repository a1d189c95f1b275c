#include "sluice/fat/codec/crc32.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "sluice/base/endian.hpp"
#include "sluice/base/ensure.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The bytes are a polynomial over GF(2) in which the lowest bit of the first byte has the highest
// power. The CRC is the remainder of that polynomial, times x^32, after division by P. So in an
// integer of n bits, bit i stands for x^(n-1-i).

namespace sluice::fat {
namespace {

constexpr std::uint32_t polynomial = 0xedb8'8320;  // P without its x^32
constexpr std::uint32_t one = 0x8000'0000;

constexpr std::uint32_t times_x(std::uint32_t of) noexcept {
    return of >> 1 ^ (of % 2 == 1 ? polynomial : 0);
}

// tables[n][byte] is the remainder of a byte that n more bytes follow.
constexpr std::size_t stride = 8;
using table_set = std::array<std::array<std::uint32_t, 256>, stride>;

constexpr table_set make_tables() noexcept {
    table_set made{};
    for (std::uint32_t byte = 0; byte != 256; ++byte) {
        std::uint32_t rest = byte;
        for (std::size_t distance = 0; distance != stride; ++distance) {
            for (int bit = 0; bit != 8; ++bit)
                rest = times_x(rest);
            made[distance][byte] = rest;
        }
    }
    return made;
}

constexpr table_set tables = make_tables();

std::uint32_t with_four(std::uint32_t four, std::size_t distance) noexcept {
    return tables[distance + 3][four & 0xff] ^ tables[distance + 2][four >> 8 & 0xff] ^
           tables[distance + 1][four >> 16 & 0xff] ^ tables[distance][four >> 24];
}

std::uint32_t four_at(std::span<const std::byte> bytes, std::size_t offset) noexcept {
    le32 four;
    std::memcpy(&four, bytes.data() + offset, sizeof four);
    return four.value();
}

std::uint32_t by_tables(std::span<const std::byte> bytes, std::uint32_t rest) noexcept {
    for (; bytes.size() >= stride; bytes = bytes.subspan(stride))
        rest = with_four(rest ^ four_at(bytes, 0), 4) ^ with_four(four_at(bytes, 4), 0);
    for (const std::byte each : bytes)
        rest = tables[0][(rest ^ std::to_integer<std::uint32_t>(each)) & 0xff] ^ rest >> 8;
    return rest;
}

#if defined(__x86_64__)
#define SLUICE_FOLDING __attribute__((target("sse2,pclmul")))

// Each of four registers of 128 bits accumulates the data 64 bytes further on: its own content,
// times x^512, is replaced by a shorter polynomial with the same remainder. The final contents of
// the registers have the same remainder as the whole input.
constexpr std::size_t lane_bytes = 16;
constexpr std::size_t lanes = 4;
constexpr std::size_t block_bytes = lanes * lane_bytes;

constexpr std::uint64_t power_of_x(unsigned exponent) noexcept {
    std::uint32_t power = one;
    while (exponent-- != 0)
        power = times_x(power);
    return std::uint64_t{power} << 32;
}

// Returns a polynomial with the same remainder as a lane that `Bits` more bits follow. The upper
// half of a lane counts as it is, the lower half counts x^64 times. The product of two 64-bit
// numbers has 127 bits, so it is x times too large where 128 bits are expected; that x is taken
// from the factors.
template <unsigned Bits>
SLUICE_FOLDING __m128i moved_by(__m128i lane) noexcept {
    constexpr std::uint64_t lower = power_of_x(Bits + 64 - 1);
    constexpr std::uint64_t upper = power_of_x(Bits - 1);
    const __m128i factors = _mm_set_epi64x(static_cast<long long>(upper), static_cast<long long>(lower));
    return _mm_xor_si128(_mm_clmulepi64_si128(lane, factors, 0x00),
                         _mm_clmulepi64_si128(lane, factors, 0x11));
}

SLUICE_FOLDING __m128i lane_at(std::span<const std::byte> bytes, std::size_t index) noexcept {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data() + index * lane_bytes));
}

// Returns the CRC of whole blocks; there is at least one.
SLUICE_FOLDING std::uint32_t by_folding(std::span<const std::byte> blocks, std::uint32_t rest) noexcept {
    ENSURE(not blocks.empty() and blocks.size() % block_bytes == 0, "whole blocks are folded");
    std::array<__m128i, lanes> sums;
    for (std::size_t i = 0; i != lanes; ++i)
        sums[i] = lane_at(blocks, i);
    sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128(static_cast<int>(rest)));
    for (blocks = blocks.subspan(block_bytes); not blocks.empty(); blocks = blocks.subspan(block_bytes))
        for (std::size_t i = 0; i != lanes; ++i)
            sums[i] = _mm_xor_si128(moved_by<8 * block_bytes>(sums[i]), lane_at(blocks, i));
    __m128i sum = sums[0];
    for (std::size_t i = 1; i != lanes; ++i)
        sum = _mm_xor_si128(moved_by<8 * lane_bytes>(sum), sums[i]);
    std::array<std::byte, lane_bytes> left;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(left.data()), sum);
    return by_tables(left, 0);
}

bool can_fold() noexcept {
    return __builtin_cpu_supports("pclmul");
}
#endif

}  // namespace

std::uint32_t crc32(bytes_view bytes, std::uint32_t before) noexcept {
    std::span<const std::byte> left = bytes.span();
    std::uint32_t rest = ~before;
#if defined(__x86_64__)
    if (const std::size_t blocks = left.size() / block_bytes; blocks != 0 and can_fold()) {
        rest = by_folding(left.first(blocks * block_bytes), rest);
        left = left.subspan(blocks * block_bytes);
    }
#endif
    return ~by_tables(left, rest);
}

}  // namespace sluice::fat
