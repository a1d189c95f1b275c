#include "sluice/cli/serve/serve_rules.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <ranges>
#include <string_view>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/byte_size.hpp"
#include "sluice/cli/serve/interfaces.hpp"
#include "sluice/cli/serve/server_name.hpp"
#include "sluice/cli/status/metrics_address.hpp"
#include "sluice/cli/user_names.hpp"
#include "sluice/smb/wire/fsctl/fsctl_dfs.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "sluice/vfs/snapshot/snapshot_pattern.hpp"

namespace sluice::cli {
namespace {

constexpr std::uint64_t size_limit_min = 1U << 20;
constexpr std::size_t referral_bytes_max = 1024;
constexpr std::size_t referral_part_bytes_max = 255;
static_assert(2 * referral_bytes_max <= smb::wire::dfs_path_bytes_max and
              referral_targets_max <= smb::wire::dfs_targets_max);

// Returns whether a name can be a part of \\server\share\path.
[[nodiscard]] bool is_referral_part(std::string_view part) noexcept {
    const auto is_excluded = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 or c == 0x7f or std::string_view("\"*:<>?|").contains(c);
    };
    return not part.empty() and part.size() <= referral_part_bytes_max and part != "." and part != ".." and
           std::ranges::none_of(part, is_excluded);
}

}  // namespace

std::string validate_host_rule(const std::string& text) {
    const auto parsed = smb::server::ip_network::parse(text);
    return parsed ? "" : parsed.error();
}

smb::server::host_rules host_rules_of(const std::vector<std::string>& allowed,
                                      const std::vector<std::string>& denied) {
    const auto parse = [](const std::string& text) {
        const auto parsed = smb::server::ip_network::parse(text);
        ENSURE(parsed.has_value(), "checked when the options were read");
        return *parsed;
    };
    smb::server::host_rules rules;
    std::ranges::transform(allowed, std::back_inserter(rules.allowed), parse);
    std::ranges::transform(denied, std::back_inserter(rules.denied), parse);
    return rules;
}

std::string validate_guest_access(const std::string& text) {
    return text == "off" or text == "read" or text == "write" ? "" : "use \"off\", \"read\", or \"write\"";
}

std::string validate_size_limit(const std::string& text) {
    if (std::string rule = validate_size(text); not rule.empty()) return rule;
    return parse_size(text).value_or(0) < size_limit_min ? "use at least 1M" : "";
}

std::string referral_path(std::string target) {
    std::ranges::replace(target, '/', '\\');
    ENSURE(target.starts_with("\\\\"), "validate_referral() has accepted the target");
    return target.substr(1);
}

std::string validate_referral(const std::string& target) {
    if (target.size() > referral_bytes_max)
        return fmt::format("it has {} bytes; use at most {}", target.size(), referral_bytes_max);
    std::string path = target;
    std::ranges::replace(path, '/', '\\');
    std::size_t parts = 0;
    bool are_valid = path.starts_with("\\\\") and smb::wire::utf16_bytes_of(path).has_value();
    if (are_valid)
        for (const auto part : std::views::split(std::string_view(path).substr(2), '\\')) {
            are_valid = are_valid and is_referral_part(std::string_view(part));
            ++parts;
        }
    if (are_valid and parts >= 2) return "";
    return "use a share of another server, as in //server/share or //server/share/directory";
}

std::string validate_server_name(const std::string& name) {
    if (name.size() <= netbios_name_max and std::ranges::all_of(name, is_in_server_name)) return "";
    return "use 1 to 15 letters, digits, and hyphens, because it is a NetBIOS name";
}

std::optional<io::socket_address> listener_address(const std::string& text, std::uint16_t port) noexcept {
    auto address = io::socket_address::ip(text, port);
    if (not address) address = io::socket_address::parse(text);
    const bool is_ip = address and address->family() != io::address_family::local;
    return is_ip ? std::optional(*address) : std::nullopt;
}

std::string validate_listener(const std::string& text) {
    return listener_address(text, 0) ? "" : "use an IP address with an optional port, as in 192.0.2.1:445";
}

std::string validate_metrics(const std::string& text) {
    return text.empty() or metrics_address(text)
               ? ""
               : "use a port, or an IP address with a port, as in 192.0.2.1:9445";
}

std::string validate_advertised_addresses(const std::string& text) {
    const auto parsed = parse_advertised(std::array{text});
    return parsed ? "" : parsed.error();
}

std::string validate_signing_algorithms(const std::string& list) {
    const auto parsed = signing_algorithms_of({list});
    return parsed ? "" : parsed.error();
}

std::expected<std::vector<smb::wire::signing_algorithm>, std::string> signing_algorithms_of(
    const std::vector<std::string>& texts) {
    using enum smb::wire::signing_algorithm;
    constexpr std::array<std::pair<std::string_view, smb::wire::signing_algorithm>, 3> known{
        {{"aes-gmac", aes_gmac}, {"aes-cmac", aes_cmac}, {"hmac-sha256", hmac_sha256}}};
    constexpr auto* rule = "use a list of aes-gmac, aes-cmac, and hmac-sha256, as in aes-gmac,aes-cmac";
    const std::string all = fmt::format("{}", fmt::join(texts, ","));
    std::vector<smb::wire::signing_algorithm> named;
    for (const auto part : std::views::split(std::string_view(all), ',')) {
        const std::string_view name(part);
        const auto found = std::ranges::find(known, name, [](const auto& one) { return one.first; });
        if (found == known.end())
            return std::unexpected(fmt::format("unknown algorithm '{}'; {}", name, rule));
        named.push_back(found->second);
    }
    if (named.empty()) return std::unexpected(fmt::format("the list is empty; {}", rule));
    return named;
}

std::string validate_previous_versions(const std::string& pattern) {
    const auto parsed = vfs::snapshot_pattern::parse(pattern);
    return parsed ? std::string() : parsed.error();
}

std::string validate_previous_versions_of_share(const std::string& pattern) {
    return pattern == no_previous_versions ? std::string() : validate_previous_versions(pattern);
}

std::string validate_user(const std::string& name_and_password) {
    return validate_user_name(name_and_password.substr(0, name_and_password.find('%')));
}

}  // namespace sluice::cli
