#pragma once

#include <string_view>

namespace sluice::smb::server {

/// Whether the target of a symbolic link leads to a place in its share wherever a program of the
/// host follows it. `target` has slashes as separators, and `directory` is where the link is, as
/// node::path() says. The server itself never leaves the share; but what clients store must not
/// mislead other programs either.
///
/// Such a target is not empty, is not absolute (no slash, drive or device in front), has no zero,
/// and goes up only in front, and no further than to the root of the share. After a name, `..`
/// would go up from where another link may lead.
[[nodiscard]] bool stays_in_share(std::string_view target, std::string_view directory) noexcept;

}  // namespace sluice::smb::server
