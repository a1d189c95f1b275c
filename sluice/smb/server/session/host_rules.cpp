#include "sluice/smb/server/session/host_rules.hpp"

#include <algorithm>
#include <charconv>
#include <span>
#include <system_error>

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

namespace {

constexpr const char* form = "use an IP address or a network, as in 10.0.0.5, 192.168.0.0/16, or fe80::/10";

// Returns whether all bits of an address after the first `bits` are zero.
[[nodiscard]] bool is_zero_after(const ip_bytes& address, unsigned bits) noexcept {
    for (unsigned i = bits; i != 128; ++i)
        if ((address[i / 8] & (std::byte{0x80} >> (i % 8))) != std::byte{}) return false;
    return true;
}

[[nodiscard]] bool is_v4(const ip_bytes& address) noexcept {
    constexpr std::array<std::byte, 12> prefix{
        {{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, std::byte{0xff}, std::byte{0xff}}};
    return std::ranges::equal(std::span(address).first<12>(), prefix);
}

}  // namespace

std::expected<ip_network, std::string> ip_network::parse(std::string_view text) {
    const std::size_t slash = text.find('/');
    const std::string_view address = text.substr(0, slash);
    if (address.contains('%'))
        return std::unexpected(
            "a rule has no scope, because it applies to all links; remove '%' and the rest");
    const auto parsed = io::socket_address::ip(address, 0);
    if (not parsed) return std::unexpected(form);
    ip_network made;
    made.bytes_ = parsed->ip_bytes();
    // The length of a prefix counts the bits of the form in which the address is written.
    const bool is_dotted = parsed->family() == io::address_family::ip_v4;
    const unsigned most = is_dotted ? 32 : 128;
    unsigned bits = most;
    if (slash != std::string_view::npos) {
        const std::string_view digits = text.substr(slash + 1);
        const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
        if (wrong != std::errc{} or end != digits.data() + digits.size() or digits.empty() or bits > most)
            return std::unexpected(is_dotted ? "use a prefix of 0 to 32 bits after '/'"
                                             : "use a prefix of 0 to 128 bits after '/'");
    }
    made.bits_ = is_dotted ? bits + 96 : bits;
    if (not is_zero_after(made.bytes_, made.bits_))
        return std::unexpected("the address has bits after the prefix; use the first address of the network");
    ENSURE(made.bits_ <= 128, "a prefix is not longer than an address");
    return made;
}

bool ip_network::contains(const ip_bytes& address) const noexcept {
    // "::/0" means all IPv6 addresses: an IPv4 client is not in it.
    if (is_v4(address) and bits_ < 96) return false;
    const unsigned whole = bits_ / 8;
    if (not std::equal(bytes_.begin(), bytes_.begin() + whole, address.begin())) return false;
    if (bits_ % 8 == 0) return true;
    const std::byte mask = ~(std::byte{0xff} >> (bits_ % 8));
    return (bytes_[whole] & mask) == (address[whole] & mask);
}

bool host_rules::permit(const ip_bytes& address) const noexcept {
    const auto has_it = [&](const ip_network& each) { return each.contains(address); };
    if (std::ranges::any_of(denied, has_it)) return false;
    return allowed.empty() or std::ranges::any_of(allowed, has_it);
}

}  // namespace sluice::smb::server
