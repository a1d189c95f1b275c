#include "sluice/cli/status/metrics_address.hpp"

#include <charconv>
#include <cstdint>
#include <system_error>

namespace sluice::cli {

std::optional<io::socket_address> metrics_address(const std::string& text) noexcept {
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, problem] = std::from_chars(text.data(), end, port);
    if (problem == std::errc{} and stopped == end) return io::socket_address::loopback_v4(port);
    const auto address = io::socket_address::parse(text);
    const bool is_ip = address and address->family() != io::address_family::local;
    return is_ip ? std::optional(*address) : std::nullopt;
}

}  // namespace sluice::cli
