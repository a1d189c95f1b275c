#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace sluice::smb::client {

inline constexpr std::uint16_t smb_port = 445;

/// What `smb://[domain;][user@]host[:port]/share/path` names. All UTF-8, without percent signs.
struct smb_url {
    std::string domain;
    std::string user;
    std::string host;  ///< without the brackets of an IPv6 address
    std::uint16_t port = smb_port;
    std::string share;
    std::string path;  ///< `/` between names, none at the ends

    /// "smb://host:4450/share/path", without the user; of an IPv6 address with brackets.
    [[nodiscard]] std::string text() const;
    /// The same with another path in the share.
    [[nodiscard]] std::string text_of(std::string_view other_path) const;

    [[nodiscard]] friend bool operator==(const smb_url&, const smb_url&) = default;
};

/// Whether a text is meant as such a URL.
[[nodiscard]] bool is_smb_url(std::string_view text) noexcept;

/// Errors: what is wrong with it, for people. A password in it is refused: everybody on the machine can read
/// a command line. So are names `.` and `..` in the path. Allocates: the parts.
[[nodiscard]] std::expected<smb_url, std::string> parse_url(std::string_view text);

}  // namespace sluice::smb::client
