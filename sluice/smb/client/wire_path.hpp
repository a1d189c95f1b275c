#pragma once

#include <string>
#include <string_view>

#include "sluice/smb/client/client_error.hpp"

namespace sluice::smb::client {

/// A path as CREATE wants it: UTF-16LE, `\` between names, none at the ends. Errors: `policy` if it is not
/// UTF-8, has a NUL in it, or is too long. Allocates: the string.
[[nodiscard]] outcome<std::string> wire_path_of(std::string_view path, const char* step);

}  // namespace sluice::smb::client
