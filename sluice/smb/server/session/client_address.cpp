#include "sluice/smb/server/session/client_address.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

namespace {

constexpr std::array<std::byte, 12> v4_prefix{
    {{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, std::byte{0xff}, std::byte{0xff}}};

[[nodiscard]] bool is_v4(const std::array<std::byte, 16>& bytes) noexcept {
    return std::ranges::equal(std::span(bytes).first<12>(), v4_prefix);
}

// fe80::/10
[[nodiscard]] bool is_link_local(const std::array<std::byte, 16>& bytes) noexcept {
    return bytes[0] == std::byte{0xfe} and (bytes[1] & std::byte{0xc0}) == std::byte{0x80};
}

}  // namespace

client_address::client_address(const io::socket_address& peer, unsigned bits) noexcept
    : bytes_(peer.ip_bytes()) {
    const bool is_network =
        peer.family() == io::address_family::ip_v6 and not is_v4(bytes_) and not is_link_local(bytes_);
    ENSURE(bits <= 128 and bits % 16 == 0, "a network has whole groups of an address");
    if (not is_network) return;
    bits_ = bits;
    std::ranges::fill(std::span(bytes_).subspan(bits / 8), std::byte{});
}

std::string client_address::text() const {
    if (bytes_ == std::array<std::byte, 16>{}) return "-";
    std::string text;
    if (is_v4(bytes_)) {
        for (std::size_t i = 12; i != bytes_.size(); ++i) {
            if (i != 12) text += '.';
            text += std::to_string(std::to_integer<unsigned>(bytes_[i]));
        }
        return text;
    }
    constexpr std::string_view digits = "0123456789abcdef";
    const std::size_t shown = bits_ / 8;
    for (std::size_t i = 0; i != shown; ++i) {
        if (i != 0 and i % 2 == 0) text += ':';
        text += digits[std::to_integer<unsigned>(bytes_[i]) >> 4];
        text += digits[std::to_integer<unsigned>(bytes_[i]) & 15];
    }
    return bits_ != 128 ? text + "::/" + std::to_string(bits_) : text;
}

}  // namespace sluice::smb::server
