#include "sluice/cli/migration/smb_hosts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "sluice/base/case_fold.hpp"
#include "sluice/cli/migration/smb_conf.hpp"

namespace sluice::cli {
namespace {

template <class Number>
[[nodiscard]] std::optional<Number> number_of(std::string_view text) noexcept {
    Number value{};
    const auto [at, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() or at != text.data() + text.size()) return std::nullopt;
    return value;
}

// Returns the bytes of "192.168.1", as many as there are; none if it is not an address.
[[nodiscard]] std::vector<std::uint8_t> bytes_of(std::string_view text) {
    std::vector<std::uint8_t> bytes;
    while (not text.empty() and bytes.size() != 5) {
        const std::size_t dot = text.find('.');
        const auto byte = number_of<std::uint8_t>(text.substr(0, dot));
        if (not byte) return {};
        bytes.push_back(*byte);
        text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
    }
    return bytes.size() > 4 ? std::vector<std::uint8_t>() : bytes;
}

// Returns the address with zeros after the first `bits`.
[[nodiscard]] std::string dotted(std::vector<std::uint8_t> bytes, unsigned bits) {
    bytes.resize(4);
    for (unsigned i = bits; i < 32; ++i)
        bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] & ~(0x80U >> (i % 8)));
    return fmt::format("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]);
}

// Returns the length of the prefix that "255.255.255.0" or "24" states.
[[nodiscard]] std::optional<unsigned> prefix_of(std::string_view text) {
    if (not text.contains('.')) return number_of<unsigned>(text);
    const auto bytes = bytes_of(text);
    if (bytes.size() != 4) return std::nullopt;
    const std::uint32_t mask = static_cast<std::uint32_t>(bytes[0]) << 24 |
                               static_cast<std::uint32_t>(bytes[1]) << 16 |
                               static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3];
    const auto length = static_cast<unsigned>(std::countl_one(mask));
    const std::uint32_t expected = length == 0 ? 0 : ~std::uint32_t{0} << (32 - length);
    return mask == expected ? std::optional(length) : std::nullopt;
}

// One list: hosts, and after EXCEPT those that it does not contain.
struct host_list {
    std::vector<std::string> hosts{};
    std::vector<std::string> excepted{};
    std::size_t unknown_hosts = 0;
    std::size_t unknown_excepted = 0;
    bool is_all = false;
    bool is_given = false;
};

[[nodiscard]] host_list list_of(std::string_view value) {
    host_list list;
    bool is_after_except = false;
    for (const std::string& each : smb_list(value)) {
        list.is_given = true;
        std::string host = smb_host(each);
        if (equal_ignoring_case(std::string_view(each), std::string_view("except")))
            is_after_except = true;
        else if (not host.empty())
            (is_after_except ? list.excepted : list.hosts).push_back(std::move(host));
        else if (not is_after_except and equal_ignoring_case(std::string_view(each), std::string_view("all")))
            list.is_all = true;
        else
            ++(is_after_except ? list.unknown_excepted : list.unknown_hosts);
    }
    return list;
}

// Without a list of those that are denied, Samba always gives the computer itself access.
void allow_this_computer(std::vector<std::string>& allowed) {
    const auto has = [&](std::string_view beginning) {
        return std::ranges::any_of(allowed,
                                   [&](const std::string& each) { return each.starts_with(beginning); });
    };
    if (not has("127.")) allowed.emplace_back("127.0.0.1");
    if (not has("::")) allowed.emplace_back("::1");
}

// An empty list would give all hosts access.
void deny_others(smb_host_lists& to) {
    if (to.allowed.empty()) to.denied = {"0.0.0.0/0", "::/0"};
}

}  // namespace

std::string smb_host(std::string_view text) {
    if (text == "localhost") return "127.0.0.1";
    const std::size_t slash = text.find('/');
    const std::string_view host = text.substr(0, slash);
    const bool is_ip6 =
        host.contains(':') and host.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
    const auto prefix =
        slash == std::string_view::npos ? std::optional(0U) : prefix_of(text.substr(slash + 1));
    if (not prefix or *prefix > (is_ip6 ? 128U : 32U)) return "";
    if (is_ip6) return std::string(text);
    const auto bytes = bytes_of(host);
    if (bytes.empty()) return "";
    if (slash != std::string_view::npos) return fmt::format("{}/{}", dotted(bytes, *prefix), *prefix);
    if (bytes.size() == 4) return dotted(bytes, 32);
    return host.ends_with('.') ? fmt::format("{}/{}", dotted(bytes, 32), 8 * bytes.size()) : "";
}

smb_host_lists converted_smb_hosts(std::string_view allow, std::string_view deny) {
    const host_list allowed = list_of(allow);
    const host_list denied = list_of(deny);
    smb_host_lists result;
    if (allowed.is_given) {
        // Samba gives the hosts in this list access, also if they are in the other.
        result.denied = allowed.excepted;
        result.not_denied = allowed.unknown_excepted;
        if (allowed.is_all) return result;
        result.allowed = allowed.hosts;
        result.not_allowed = allowed.unknown_hosts;
        result.denies_others = denied.is_given and not denied.is_all;
        if (not denied.is_given) allow_this_computer(result.allowed);
        deny_others(result);
    } else if (denied.is_all) {
        result.allowed = denied.excepted;
        result.not_allowed = denied.unknown_excepted;
        deny_others(result);
    } else {
        result.denied = denied.hosts;
        result.not_denied = denied.unknown_hosts;
        result.not_allowed = denied.excepted.size() + denied.unknown_excepted;
    }
    return result;
}

}  // namespace sluice::cli
