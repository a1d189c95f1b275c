#pragma once

#include <string>
#include <utility>

#include "sluice/base/result.hpp"

// Error reports of `sluice fat`.

namespace sluice::cli {

/// Prints "sluice fat: why" to standard error, safe for a terminal, and leaves.
[[noreturn]] void fail_fat(const std::string& why);
/// Returns "No space left on device", or the rule and the remedy where FAT has a rule of its own.
[[nodiscard]] std::string fat_reason(const error& why);
/// Returns "what: reason".
[[nodiscard]] std::string fat_message(const error& why, const std::string& what);

/// Returns "/a/b" for the path "a/b" of a volume, safe for a terminal. Names from an image are
/// printed through this or terminal_text() only.
[[nodiscard]] std::string shown(const std::string& path);

/// Returns the value, or leaves with "what: why".
template <class T>
[[nodiscard]] T value_or_fail(result<T> got, const std::string& what) {
    if (not got) fail_fat(fat_message(got.error(), what));
    return *std::move(got);
}
void succeed_or_fail(const result<void>& got, const std::string& what);

}  // namespace sluice::cli
