#include "sluice/smb/server/journal/crc32c.hpp"

#include <array>
#include <cstring>

#include "sluice/base/ensure.hpp"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace sluice::smb::server {
namespace {

constexpr std::uint32_t polynomial = 0x82f6'3b78;  // bit 31 - i stands for x^i

constexpr std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t byte = 0; byte != made.size(); ++byte) {
        std::uint32_t rest = byte;
        for (int bit = 0; bit != 8; ++bit)
            rest = rest >> 1 ^ (rest % 2 == 1 ? polynomial : 0);
        made[byte] = rest;
    }
    return made;
}();
static_assert(table[128] == polynomial, "the remainder of a single highest power is the polynomial");

std::uint32_t by_table(bytes_view bytes, std::uint32_t rest) noexcept {
    for (const std::byte each : bytes)
        rest = table[(rest ^ std::to_integer<std::uint32_t>(each)) & 0xff] ^ rest >> 8;
    return rest;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(bytes_view bytes,
                                                               std::uint32_t before) noexcept {
    constexpr std::size_t step = sizeof(std::uint64_t);
    std::uint64_t rest = before;
    std::size_t done = 0;
    for (; bytes.size() - done >= step; done += step) {
        std::uint64_t eight;
        std::memcpy(&eight, bytes.data() + done, step);
        rest = _mm_crc32_u64(rest, eight);
    }
    ENSURE(bytes.size() - done < step);
    const auto left = bytes.from(done);
    return by_table(*left, static_cast<std::uint32_t>(rest));
}
#endif

}  // namespace

std::uint32_t crc32c(bytes_view bytes, std::uint32_t before) noexcept {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(bytes, ~before);
#endif
    return ~by_table(bytes, ~before);
}

}  // namespace sluice::smb::server
