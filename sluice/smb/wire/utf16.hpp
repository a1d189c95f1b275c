#pragma once

#include <cstddef>
#include <memory_resource>
#include <string>
#include <string_view>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// Names on the wire are UTF-16LE and need not be well-formed: Windows file systems keep any 16-bit units.
// Ours are UTF-8. A surrogate without its partner becomes the three bytes UTF-8 would have for its number
// (WTF-8), so that every name comes back as it was sent. Two such surrogates that would form a pair are
// refused on the way out: they have a proper spelling, and two spellings of one name are two ways past a
// check.

namespace sluice::smb::wire {

/// UTF-16LE bytes as UTF-8 (WTF-8). Any even number of bytes has exactly one reading; a zero unit is kept.
/// Errors: `bad_text` for an odd number of bytes. Allocates: the string. Complexity: linear.
[[nodiscard]] decoded<std::string> utf8_of(bytes_view utf16) noexcept;

/// The same behind what `text` has already; nothing there if it fails.
[[nodiscard]] decoded<void> append_utf8_of(bytes_view utf16, std::pmr::string& text) noexcept;

/// How many bytes `utf8` takes as UTF-16LE.
/// Errors: `bad_text` if it is not UTF-8 (WTF-8). Allocates: nothing. Complexity: linear.
[[nodiscard]] decoded<std::size_t> utf16_bytes_of(std::string_view utf8) noexcept;

/// Writes `utf8` as UTF-16LE, without a terminator, and returns the number of bytes. What does not fit shows
/// in the writer, as always.
/// Errors: `bad_text`, nothing written. Allocates: nothing. Complexity: linear.
[[nodiscard]] decoded<std::size_t> put_utf16(byte_writer& writer, std::string_view utf8) noexcept;

/// The same as a string of bytes, for callers that have no buffer at hand.
/// Errors: `bad_text`. Allocates: the string. Complexity: linear.
[[nodiscard]] decoded<std::string> utf16_of(std::string_view utf8) noexcept;

}  // namespace sluice::smb::wire
