#pragma once

#include <string>
#include <utility>

#include "sluice/base/result.hpp"
#include "sluice/cli/message.hpp"

// Error reports of `sluice fat`.

namespace sluice::cli {

/// Returns "write: No space left on device", or the rule and the remedy where FAT has a rule of its
/// own.
[[nodiscard]] std::string fat_reason(const error& why);
/// Returns "what: write: reason".
[[nodiscard]] std::string fat_message(const error& why, const std::string& what);

/// Returns "/a/b" for the path "a/b" of a volume, safe for a terminal. Names from an image are
/// printed through this or terminal_text() only.
[[nodiscard]] std::string shown(const std::string& path);

/// Returns whether the path names a file; false if that cannot be determined.
[[nodiscard]] bool exists(const std::string& path) noexcept;
/// Removes a file, if it exists, or leaves with the reason.
void remove_or_fail(const std::string& path);

/// Returns the value, or leaves with "what: why".
template <class T>
[[nodiscard]] T value_or_fail(result<T> got, const std::string& what) {
    if (not got) fail(fat_message(got.error(), what));
    return *std::move(got);
}
void succeed_or_fail(const result<void>& got, const std::string& what);

}  // namespace sluice::cli
