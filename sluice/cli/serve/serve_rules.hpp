#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "sluice/io/call/socket_address.hpp"
#include "sluice/smb/server/session/host_rules.hpp"
#include "sluice/smb/wire/message/negotiate_contexts.hpp"

namespace sluice::cli {

// The rules for the settings of `sluice serve`, for the command line and for the configuration
// file. Each function validate_* returns the rule that a value violates, as
// option_syntax::check() needs it, or an empty text. Thread safety: pure functions.

/// For --name: a NetBIOS name, which old clients require.
[[nodiscard]] std::string validate_server_name(const std::string& name);

/// For --listen.
[[nodiscard]] std::string validate_listener(const std::string& text);
/// Returns the address of a listener; `port` if the text has none. Returns std::nullopt if the text
/// is not an IP address with an optional port.
[[nodiscard]] std::optional<io::socket_address> listener_address(const std::string& text,
                                                                 std::uint16_t port) noexcept;

/// For --metrics.
[[nodiscard]] std::string validate_metrics(const std::string& text);

/// For --advertise.
[[nodiscard]] std::string validate_advertised_addresses(const std::string& text);

/// For --signing-algorithms: a list with commas.
[[nodiscard]] std::string validate_signing_algorithms(const std::string& list);
/// Returns the algorithms that the texts, each a name or a list with commas, name; in their order.
/// Errors: the rule that they violate.
[[nodiscard]] std::expected<std::vector<smb::wire::signing_algorithm>, std::string> signing_algorithms_of(
    const std::vector<std::string>& texts);

/// The largest number of rules in each list of hosts.
inline constexpr std::size_t host_rules_max = 1024;

/// For --allowed-host and --denied-host.
[[nodiscard]] std::string validate_host_rule(const std::string& text);
/// Returns the rules of two lists of valid texts.
[[nodiscard]] smb::server::host_rules host_rules_of(const std::vector<std::string>& allowed,
                                                    const std::vector<std::string>& denied);

/// For the setting guest of a share.
[[nodiscard]] std::string validate_guest_access(const std::string& text);

/// For the setting size-limit: the form of parse_size(), and enough for a file.
[[nodiscard]] std::string validate_size_limit(const std::string& text);

/// For the setting recycle: a century.
inline constexpr unsigned recycle_days_max = 36'500;

/// The largest number of targets of a share that refers to other servers.
inline constexpr std::size_t referral_targets_max = 16;

/// For the setting referral: a share of another server, as //server/share or \\server\share, with
/// a path in it or without.
[[nodiscard]] std::string validate_referral(const std::string& target);
/// Returns a valid target in the form of the protocol, \server\share\path ([MS-DFSC] 2.2.5).
[[nodiscard]] std::string referral_path(std::string target);

/// For --previous-versions: a pattern of snapshots.
[[nodiscard]] std::string validate_previous_versions(const std::string& pattern);
/// The same for one share, which may also have none.
[[nodiscard]] std::string validate_previous_versions_of_share(const std::string& pattern);
inline constexpr const char* no_previous_versions = "off";

/// For --homes: an absolute path.
[[nodiscard]] std::string validate_homes(const std::string& directory);

/// For --user. The rule does not contain the value, which may have a password.
[[nodiscard]] std::string validate_user(const std::string& name_and_password);

}  // namespace sluice::cli
