#include "sluice/cli/doctor/remote/target.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace sluice::cli::doctor {
namespace {

constexpr std::size_t host_bytes_max = 255;  // RFC 1035 2.3.4

[[nodiscard]] bool is_host_character(char each) noexcept {
    const auto byte = static_cast<unsigned char>(each);
    const bool is_letter_or_digit =
        (each >= 'a' and each <= 'z') or (each >= 'A' and each <= 'Z') or (each >= '0' and each <= '9');
    return is_letter_or_digit or byte >= 0x80 or std::string_view(".-_:%").contains(each);
}

[[nodiscard]] bool set_port(std::string_view text, std::uint16_t& port) noexcept {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), port);
    return code == std::errc() and end == text.data() + text.size() and port != 0;
}

// Parses HOST, HOST:PORT, [IPV6], [IPV6]:PORT, or an IPv6 address without brackets.
[[nodiscard]] std::expected<void, std::string> parse_endpoint(std::string_view text, remote_target& into) {
    std::string_view port;
    if (text.starts_with('[')) {
        const std::size_t end = text.find(']');
        if (end == text.npos) return std::unexpected("close the bracket of the IPv6 address");
        into.host = text.substr(1, end - 1);
        port = text.substr(end + 1);
        if (not port.empty() and not port.starts_with(':')) return std::unexpected("use [ADDRESS]:PORT");
        if (not port.empty()) port.remove_prefix(1);
        if (port.empty() and end + 1 != text.size()) return std::unexpected("use a port of 1 to 65535");
    } else if (std::ranges::count(text, ':') == 1) {
        const std::size_t colon = text.find(':');
        into.host = text.substr(0, colon);
        port = text.substr(colon + 1);
        if (port.empty()) return std::unexpected("use a port of 1 to 65535");
    } else {
        into.host = text;
    }
    if (not port.empty() and not set_port(port, into.port))
        return std::unexpected("use a port of 1 to 65535");
    const bool is_valid = not into.host.empty() and into.host.size() <= host_bytes_max and
                          into.host.front() != '-' and std::ranges::all_of(into.host, is_host_character);
    if (not is_valid) return std::unexpected("use the name or address of a host");
    return {};
}

}  // namespace

std::string remote_target::text() const {
    std::string text = "//" + (host.contains(':') ? "[" + host + "]" : host);
    if (port != smb::client::smb_port) text += ":" + std::to_string(port);
    if (not share.empty()) text += "/" + share;
    if (not path.empty()) text += "/" + path;
    return text;
}

std::string without_password(std::string text) {
    const std::size_t scheme = text.find("//");
    const std::size_t user = scheme == std::string::npos ? 0 : scheme + 2;
    const std::size_t at = text.rfind('@');
    const std::size_t colon = text.find(':', user);
    if (at != std::string::npos and colon < at) text.replace(colon + 1, at - colon - 1, "***");
    return text;
}

std::expected<remote_target, std::string> parse_target(const std::string& text) {
    std::string_view rest = text;
    if (rest.starts_with("smb://")) {
        if (const auto url = smb::client::parse_url(text); url)
            return remote_target{.domain = url->domain,
                                 .user = url->user,
                                 .host = url->host,
                                 .port = url->port,
                                 .share = url->share,
                                 .path = url->path};
        rest.remove_prefix(std::string_view("smb:").size());
    }
    if (rest.starts_with("//")) rest.remove_prefix(2);
    remote_target target;
    const std::size_t slash = rest.find('/');
    std::string_view endpoint = rest.substr(0, slash);
    if (const std::size_t at = endpoint.rfind('@'); at != endpoint.npos) {
        target.user = endpoint.substr(0, at);
        if (target.user.contains(':'))
            return std::unexpected("omit the password, which other users can see; use --password-file");
        if (const std::size_t mark = target.user.find_first_of(";\\"); mark != std::string::npos) {
            target.domain = target.user.substr(0, mark);
            target.user.erase(0, mark + 1);
        }
        endpoint.remove_prefix(at + 1);
    }
    if (const auto parsed = parse_endpoint(endpoint, target); not parsed)
        return std::unexpected(parsed.error());
    if (slash == rest.npos) return target;
    std::string_view names = rest.substr(slash + 1);
    while (names.ends_with('/'))
        names.remove_suffix(1);
    const std::size_t end = names.find('/');
    target.share = names.substr(0, end);
    if (end != names.npos) target.path = names.substr(end + 1);
    return target;
}

}  // namespace sluice::cli::doctor
