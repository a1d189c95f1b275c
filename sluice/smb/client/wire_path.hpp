#pragma once

#include <string>
#include <string_view>

#include "sluice/smb/client/client_error.hpp"

namespace sluice::smb::client {

/// Returns a path in the form of CREATE: UTF-16LE, `\` between names, not at the ends. Errors:
/// `policy` if it is not UTF-8, contains a NUL, or is too long. Allocates: the string.
[[nodiscard]] outcome<std::string> wire_path_of(std::string_view path, const char* step);

}  // namespace sluice::smb::client
