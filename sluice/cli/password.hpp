#pragma once

#include <string>

namespace sluice::cli {

/// Reads a password from standard input: from a terminal after asking for it, without showing it; from a
/// pipe, its first line.
[[nodiscard]] std::string ask_password(const std::string& prompt);

}  // namespace sluice::cli
