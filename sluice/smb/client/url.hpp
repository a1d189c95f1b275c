#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace sluice::smb::client {

inline constexpr std::uint16_t smb_port = 445;

/// The parts of `smb://[domain;][user@]host[:port]/share/path`. All are UTF-8, without
/// percent-encoding.
struct smb_url {
    std::string domain;
    std::string user;
    std::string host;  ///< without the brackets of an IPv6 address
    std::uint16_t port = smb_port;
    std::string share;
    std::string path;  ///< `/` between names, not at the ends

    /// Returns the URL, as in "smb://host:4450/share/path", without the user. An IPv6 address has
    /// brackets. Without a share, it ends with the host.
    [[nodiscard]] std::string text() const;
    /// Returns the same with another path in the share.
    [[nodiscard]] std::string text_of(std::string_view other_path) const;

    [[nodiscard]] friend bool operator==(const smb_url&, const smb_url&) = default;
};

/// Whether a URL must name a share.
enum class share_rule : std::uint8_t { required, optional };

/// Returns whether a text has the form of such a URL, or of its short form `//host/share`.
[[nodiscard]] bool is_smb_url(std::string_view text) noexcept;

/// Parses a URL. Errors: a text for the user. A password in it is rejected, because other users on
/// the machine can read a command line. Names `.` and `..` in the path are rejected, too.
/// Allocates: the parts.
[[nodiscard]] std::expected<smb_url, std::string> parse_url(std::string_view text,
                                                            share_rule share = share_rule::required);

}  // namespace sluice::smb::client
