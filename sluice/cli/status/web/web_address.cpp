#include "sluice/cli/status/web/web_address.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "sluice/cli/status/metrics_address.hpp"
#include "sluice/discovery/network/interface_list.hpp"

namespace sluice::cli {

namespace {

constexpr std::string_view unix_prefix = "unix:";

// Removes the port, ":" and digits.
[[nodiscard]] std::string_view without_port(std::string_view host) noexcept {
    const std::size_t colon = host.rfind(':');
    if (colon == std::string_view::npos or host.ends_with(']')) return host;
    const bool is_port =
        std::ranges::all_of(host.substr(colon + 1), [](char c) { return c >= '0' and c <= '9'; });
    return is_port ? host.substr(0, colon) : host;
}

}  // namespace

std::expected<io::socket_address, std::string> web_address(const std::string& text) {
    if (text.starts_with(unix_prefix)) {
        const auto address = io::socket_address::parse(text);
        // Any account could take a name in the abstract name space.
        if (address and address->local_name().starts_with('/')) return *address;
        return std::unexpected("use an absolute path of at most 107 bytes, as in unix:/run/sluice/web.sock");
    }
    const auto address = metrics_address(text);
    if (not address)
        return std::unexpected(
            "use a port, a loopback address with a port, or a Unix socket, as in 9446, [::1]:9446, or "
            "unix:/run/sluice/web.sock");
    if (discovery::is_loopback(*address)) return *address;
    return std::unexpected(
        "the page has no encryption, so it is for a loopback address only; to reach it from another "
        "host, use 'ssh -L' or a reverse proxy with TLS");
}

std::string validate_web(const std::string& text) {
    if (text.empty()) return "";
    const auto address = web_address(text);
    return address ? "" : address.error();
}

bool is_own_host(std::string_view host, const io::socket_address& own) noexcept {
    constexpr std::array<std::string_view, 3> names{"localhost", "127.0.0.1", "[::1]"};
    const std::string_view name = without_port(host);
    if (std::ranges::find(names, name) != names.end()) return true;
    if (own.family() == io::address_family::local) return false;
    std::array<char, io::socket_address::text_bytes_max> memory;
    return name == without_port(own.text_into(memory));
}

bool is_own_fetch(const fetch_reason& sent) noexcept {
    if (sent.site != "cross-site" and sent.site != "same-site") return true;
    return sent.mode == "navigate" and (sent.dest.empty() or sent.dest == "document");
}

bool is_own_form(const form_origin& sent) noexcept {
    if (not sent.fetch_site.empty()) return sent.fetch_site == "same-origin";
    if (sent.origin.empty()) return true;
    constexpr std::string_view scheme = "http://";
    return sent.origin.starts_with(scheme) and sent.origin.substr(scheme.size()) == sent.host;
}

}  // namespace sluice::cli
