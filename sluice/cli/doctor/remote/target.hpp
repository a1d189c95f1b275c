#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "sluice/smb/client/url.hpp"

namespace sluice::cli::doctor {

/// The server to check, and optionally the user, the share and the file.
struct remote_target {
    std::string domain;
    std::string user;  ///< empty: no logon
    std::string host;  ///< without the brackets of an IPv6 address
    std::uint16_t port = smb::client::smb_port;
    std::string share;  ///< empty: none
    std::string path;   ///< `/` between names; empty: the root of the share

    /// Returns the form "//HOST:PORT/SHARE", without the port if it is 445, and without the user.
    [[nodiscard]] std::string text() const;
};

/// Parses HOST, HOST:PORT, [IPV6]:PORT, //HOST/SHARE/PATH or an smb:// URL, each with or without
/// USER@ before the host. Errors: the rule that the text violates, which does not contain the text,
/// because it may have a password. Allocates: the parts.
[[nodiscard]] std::expected<remote_target, std::string> parse_target(const std::string& text);

/// Returns the text for a message, with "***" in place of a password in it.
[[nodiscard]] std::string without_password(std::string text);

}  // namespace sluice::cli::doctor
