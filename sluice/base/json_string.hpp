#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// Appends `text` to `into` as a JSON string (RFC 8259), quoted. Names of files are any bytes: each byte that
/// belongs to no UTF-8 character becomes U+FFFD. Characters that would end the string or control a terminal
/// are escaped. Allocates: what `into` needs to grow. Complexity: linear.
void append_json_string(std::string& into, std::string_view text);

/// The same as a string of its own.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace sluice
