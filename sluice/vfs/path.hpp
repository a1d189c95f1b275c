#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/base/result.hpp"

// The rules for paths of a volume, the same for every implementation. See `node` for their format.

namespace sluice::vfs {

/// Checks that `name` is a valid component of a path: UTF-8 (lone surrogates as WTF-8), not `.` or
/// `..` (nor a form that a host would interpret as one), and without the characters that Windows
/// clients cannot use: controls and " * / : < > ? \ |. A host's names with these characters are
/// mapped to the private range of Unicode (see host_name.hpp). Errors: EILSEQ; ENAMETOOLONG beyond
/// limits::name_units_max UTF-16 units. Allocates: nothing.
[[nodiscard]] result<void> check_name(std::string_view name) noexcept;

/// Checks that `path` is valid: components separated by single slashes, or empty for the root.
/// Errors: as check_name. Allocates: nothing. Complexity: linear.
[[nodiscard]] result<void> check_path(std::string_view path) noexcept;

/// Checks the name of a stream, in which only : / \ and zero are invalid.
[[nodiscard]] result<void> check_stream_name(std::string_view name) noexcept;

/// Returns the `file_key::stream` of a named stream: the same for names that differ only in case,
/// and never 0. It is a hash, so different names may have the same number.
[[nodiscard]] std::uint64_t stream_number(std::string_view name);

/// A path divided into its parent and its last component.
struct path_parts {
    std::string_view parent;  // empty: the root
    std::string_view name;    // empty only for the root itself
};
[[nodiscard]] constexpr path_parts split_path(std::string_view path) noexcept {
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos) return {.parent = {}, .name = path};
    return {.parent = path.substr(0, slash), .name = path.substr(slash + 1)};
}

/// Returns `directory` and `name` as one path.
[[nodiscard]] std::string join_path(std::string_view directory, std::string_view name);

}  // namespace sluice::vfs
