#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// Appends `text` to `into` as a quoted JSON string (RFC 8259). File names may be any bytes: each
/// byte that belongs to no UTF-8 character becomes U+FFFD. Characters that would end the string or
/// control a terminal are escaped. Allocates: the growth of `into`. Complexity: linear.
void append_json_string(std::string& into, std::string_view text);

/// Returns the same as a separate string.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace sluice
