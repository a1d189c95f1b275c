#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

/// Returns `text`, which may come from a server or from file names, in a form that is safe for a
/// terminal: every control character (C0, DEL, C1), every character that changes the direction of
/// the text, and every byte that is not UTF-8 is replaced by '?'. So a name can neither move the
/// cursor, nor begin a line, nor look like another. Allocates: the string.
[[nodiscard]] std::string terminal_text(std::string_view text);

}  // namespace sluice::cli
