#include "sluice/discovery/network/link.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::discovery {

namespace {

constexpr std::size_t v4_begin = 12;  // in a mapped address

[[nodiscard]] unsigned byte_at(const ip_bytes& address, std::size_t index) noexcept {
    return std::to_integer<unsigned>(address[index]);
}

[[nodiscard]] bool has_same_prefix(const ip_bytes& a, const ip_bytes& b, unsigned bits) noexcept {
    ENSURE(bits <= 128);
    for (std::size_t i = 0; bits != 0; ++i) {
        const unsigned count = std::min(bits, 8U);
        const unsigned mask = 0xffU << (8 - count) & 0xffU;
        if (((byte_at(a, i) ^ byte_at(b, i)) & mask) != 0) return false;
        bits -= count;
    }
    return true;
}

}  // namespace

bool is_v4(const ip_bytes& address) noexcept {
    const auto zeros = std::span(address).first<10>();
    return std::ranges::all_of(zeros, [](std::byte one) { return one == std::byte{0}; }) and
           byte_at(address, 10) == 0xff and byte_at(address, 11) == 0xff;
}

bool is_link_local(const ip_bytes& address) noexcept {
    if (is_v4(address)) return byte_at(address, v4_begin) == 169 and byte_at(address, v4_begin + 1) == 254;
    return byte_at(address, 0) == 0xfe and (byte_at(address, 1) & 0xc0U) == 0x80;
}

bool is_private(const ip_bytes& address) noexcept {
    if (is_link_local(address)) return true;
    if (not is_v4(address)) return (byte_at(address, 0) & 0xfeU) == 0xfc;
    const unsigned first = byte_at(address, v4_begin);
    const unsigned second = byte_at(address, v4_begin + 1);
    return first == 10 or (first == 172 and (second & 0xf0U) == 16) or (first == 192 and second == 168) or
           (first == 100 and (second & 0xc0U) == 64);
}

bool is_on_link(const link& where, const ip_bytes& address) noexcept {
    if (is_link_local(address)) return true;
    return std::ranges::any_of(where.all, [&](const link_address& own) {
        return is_v4(own.address) == is_v4(address) and
               has_same_prefix(own.address, address, own.prefix_bits);
    });
}

}  // namespace sluice::discovery
