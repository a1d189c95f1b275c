#include "sluice/fat/crc32.hpp"

#include <array>

namespace sluice::fat {
namespace {

constexpr std::uint32_t polynomial = 0xedb8'8320;  // reflected

constexpr std::array<std::uint32_t, 256> make_table() noexcept {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte != table.size(); ++byte) {
        std::uint32_t rest = byte;
        for (int bit = 0; bit != 8; ++bit)
            rest = (rest >> 1) ^ (rest % 2 == 1 ? polynomial : 0);
        table[byte] = rest;
    }
    return table;
}

constexpr auto table = make_table();

}  // namespace

std::uint32_t crc32(bytes_view bytes, std::uint32_t before) noexcept {
    std::uint32_t rest = ~before;
    for (const std::byte each : bytes)
        rest = table[(rest ^ std::to_integer<std::uint32_t>(each)) & 0xff] ^ (rest >> 8);
    return ~rest;
}

}  // namespace sluice::fat
