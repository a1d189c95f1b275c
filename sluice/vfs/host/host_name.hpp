#pragma once

#include <string>
#include <string_view>

#include "sluice/base/result.hpp"

// The shown form of names that Windows does not allow. The host allows every byte except zero and
// the slash. Windows allows neither control characters nor " * : < > ? \ |, nor a dot or space at
// the end. Those characters are mapped to the private range of Unicode that Services for Macintosh
// chose, that macOS and Linux clients (`mapposix`) use, and that Samba knows: U+F001 to U+F01F for
// the controls, then U+F020 to U+F027 for " * : < > ? \ |, U+F028 for a last space and U+F029 for a
// last dot.

namespace sluice::vfs {

/// Returns the name that clients use for a host's name. The result is a view of `name` if no
/// character is mapped, otherwise of `storage`. Each byte that is not valid UTF-8 is shown as
/// U+FFFD: such a file is listed but cannot be opened. Allocates: in `storage`, if a character is
/// mapped.
[[nodiscard]] std::string_view shown_name(std::string_view name, std::string& storage);

/// Returns the path that clients use for a host's path: each component as by shown_name().
/// Allocates: the result.
[[nodiscard]] std::string shown_path(std::string_view path);

/// Returns the host's name for a client's name: the inverse. Also accepts a path, because slashes
/// are unchanged. Two shown names may map to the same host name.
[[nodiscard]] std::string_view host_name(std::string_view shown, std::string& storage);

/// Returns the host's path for a path of the volume, checked with check_path.
/// Errors: as check_path. Allocates: as host_name.
[[nodiscard]] result<std::string_view> host_path(std::string_view shown, std::string& storage);

/// Returns the host's character for a mapped one; other characters are returned unchanged.
[[nodiscard]] char32_t host_character(char32_t shown) noexcept;

}  // namespace sluice::vfs
