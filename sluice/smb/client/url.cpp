#include "sluice/smb/client/url.hpp"

#include <charconv>
#include <system_error>

namespace sluice::smb::client {

namespace {

constexpr std::string_view scheme = "smb://";
constexpr std::string_view short_scheme = "//";

[[nodiscard]] int digit_of(char c) noexcept {
    if (c >= '0' and c <= '9') return c - '0';
    if (c >= 'a' and c <= 'f') return c - 'a' + 10;
    if (c >= 'A' and c <= 'F') return c - 'A' + 10;
    return -1;
}

[[nodiscard]] std::expected<std::string, std::string> decoded(std::string_view text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            plain += text[i];
            continue;
        }
        const int high = i + 1 < text.size() ? digit_of(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? digit_of(text[i + 2]) : -1;
        if (high < 0 or low < 0 or (high == 0 and low == 0))
            return std::unexpected(
                "use '%' only with two hexadecimal digits other than 00; write '%25' for a percent sign");
        plain += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return plain;
}

// Consumes user and domain at the front, if present.
[[nodiscard]] std::expected<void, std::string> take_user(std::string_view& authority, smb_url& into) {
    const std::size_t at = authority.rfind('@');
    if (at == std::string_view::npos) return {};
    std::string_view who = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    if (who.contains(':'))
        return std::unexpected(
            "a URL must not contain a password, because other users can read the command line; "
            "type it, or use SLUICE_PASSWORD or --password-file");
    if (const std::size_t semicolon = who.find(';'); semicolon != std::string_view::npos) {
        auto domain = decoded(who.substr(0, semicolon));
        if (not domain) return std::unexpected(domain.error());
        into.domain = std::move(*domain);
        who.remove_prefix(semicolon + 1);
    }
    auto user = decoded(who);
    if (not user) return std::unexpected(user.error());
    into.user = std::move(*user);
    return {};
}

[[nodiscard]] std::expected<void, std::string> take_host(std::string_view authority, smb_url& into) {
    std::string_view port;
    if (authority.starts_with('[')) {
        const std::size_t end = authority.find(']');
        if (end == std::string_view::npos) return std::unexpected("missing ']' after the address");
        // %25 before the name of an interface.
        auto address = decoded(authority.substr(1, end - 1));
        if (not address) return std::unexpected(address.error());
        into.host = std::move(*address);
        port = authority.substr(end + 1);
    } else {
        const std::size_t colon = authority.find(':');
        if (colon != authority.rfind(':'))
            return std::unexpected("write an IPv6 address in brackets, as in smb://[::1]/share");
        into.host = authority.substr(0, colon);
        if (colon != std::string_view::npos) port = authority.substr(colon);
    }
    if (into.host.empty()) return std::unexpected("missing host; use smb://HOST/SHARE/PATH");
    if (port.empty()) return {};
    const char* const end = port.data() + port.size();
    const auto read = std::from_chars(port.data() + 1, end, into.port);
    if (port.front() != ':' or read.ec != std::errc() or read.ptr != end or into.port == 0)
        return std::unexpected("use a port from 1 to 65535");
    return {};
}

[[nodiscard]] std::expected<void, std::string> take_path(std::string_view rest, smb_url& into) {
    while (not rest.empty()) {
        const std::size_t slash = rest.find('/');
        auto name = decoded(rest.substr(0, slash));
        if (not name) return std::unexpected(name.error());
        rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
        if (name->empty()) continue;
        if (*name == "." or *name == "..") return std::unexpected("names in the path cannot be '.' or '..'");
        if (into.share.empty()) {
            into.share = std::move(*name);
            continue;
        }
        if (not into.path.empty()) into.path += '/';
        into.path += *name;
    }
    return {};
}

}  // namespace

std::string smb_url::text_of(std::string_view other_path) const {
    const bool is_v6 = host.contains(':');
    std::string made(scheme);
    made += is_v6 ? "[" + host + "]" : host;
    if (port != smb_port) made += ":" + std::to_string(port);
    if (not share.empty()) made += "/" + share;
    if (not other_path.empty()) made.append("/").append(other_path);
    return made;
}

std::string smb_url::text() const {
    return text_of(path);
}

bool is_smb_url(std::string_view text) noexcept {
    return text.starts_with(scheme) or text.starts_with(short_scheme);
}

std::expected<smb_url, std::string> parse_url(std::string_view text, share_rule share) {
    if (not is_smb_url(text)) return std::unexpected("use smb://HOST/SHARE/PATH");
    text.remove_prefix(text.starts_with(scheme) ? scheme.size() : short_scheme.size());
    const std::size_t slash = text.find('/');
    std::string_view authority = text.substr(0, slash);
    smb_url made;
    if (const auto taken = take_user(authority, made); not taken) return std::unexpected(taken.error());
    if (const auto taken = take_host(authority, made); not taken) return std::unexpected(taken.error());
    const std::string_view rest = slash == std::string_view::npos ? "" : text.substr(slash + 1);
    if (const auto taken = take_path(rest, made); not taken) return std::unexpected(taken.error());
    if (share == share_rule::required and made.share.empty())
        return std::unexpected(
            "missing share; use smb://HOST/SHARE/PATH, or list the shares with 'sluice ls'");
    return made;
}

}  // namespace sluice::smb::client
