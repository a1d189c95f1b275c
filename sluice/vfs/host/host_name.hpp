#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.hpp"

// How names are shown that Windows cannot have. The host allows every byte but zero and the slash; Windows
// neither control characters nor " * : < > ? \ |, nor a dot or space at the end. Those characters are shown
// in the private range of Unicode that Services for Macintosh chose, that macOS and Linux clients
// (`mapposix`) use, and that Samba knows: U+F001 to U+F01F for the controls, then U+F020 to U+F027 for " * :
// < > ? \ |, U+F028 for a last space and U+F029 for a last dot.

namespace sluice::vfs {

/// The name by which clients know a host's name. A view of `name` if nothing needs mapping, else of
/// `storage`. Bytes that are no UTF-8 are shown as U+FFFD each: such a file can be seen, not opened.
/// Allocates: in `storage`, if anything needs mapping.
[[nodiscard]] std::string_view shown_name(std::string_view name, std::string& storage);

/// The path by which clients know a host's path: each component as by shown_name(). Allocates: the result.
[[nodiscard]] std::string shown_path(std::string_view path);

/// The host's name behind what a client asks for: the inverse. Of a path, too: slashes stay. What two shown
/// names lead to may be one and the same.
[[nodiscard]] std::string_view host_name(std::string_view shown, std::string& storage);

/// The host's path behind a path of the volume, checked with check_path.
/// Errors: as check_path. Allocates: as host_name.
[[nodiscard]] result<std::string_view> host_path(std::string_view shown, std::string& storage);

/// The character behind one that is shown in its place; others stay.
[[nodiscard]] char32_t host_character(char32_t shown) noexcept;

}  // namespace sluice::vfs
