#pragma once

#include <cstddef>
#include <memory_resource>
#include <string>
#include <string_view>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// Names on the wire are UTF-16LE and need not be well-formed, because Windows file systems accept
// any 16-bit units. In memory names are UTF-8. An unpaired surrogate becomes the three bytes that
// UTF-8 would use for its number (WTF-8), so that every name round-trips. Encoding rejects two such
// surrogates that would form a pair, because one name with two encodings could bypass a check.

namespace sluice::smb::wire {

/// Converts UTF-16LE bytes to UTF-8 (WTF-8). Any even number of bytes has exactly one encoding; a
/// zero unit is kept. Errors: `bad_text` for an odd number of bytes. Allocates: the string.
/// Complexity: linear.
[[nodiscard]] decoded<std::string> utf8_of(bytes_view utf16) noexcept;

/// The same, appended to `text`. Appends nothing in case of an error.
[[nodiscard]] decoded<void> append_utf8_of(bytes_view utf16, std::pmr::string& text) noexcept;

/// Returns the length of `utf8` as UTF-16LE, in bytes.
/// Errors: `bad_text` if it is not UTF-8 (WTF-8). Allocates: nothing. Complexity: linear.
[[nodiscard]] decoded<std::size_t> utf16_bytes_of(std::string_view utf8) noexcept;

/// Writes `utf8` as UTF-16LE, without a terminator, and returns the number of bytes. An overflow is
/// recorded in the writer.
/// Errors: `bad_text`, nothing written. Allocates: nothing. Complexity: linear.
[[nodiscard]] decoded<std::size_t> put_utf16(byte_writer& writer, std::string_view utf8) noexcept;

/// The same as a string of bytes, for callers without a buffer.
/// Errors: `bad_text`. Allocates: the string. Complexity: linear.
[[nodiscard]] decoded<std::string> utf16_of(std::string_view utf8) noexcept;

}  // namespace sluice::smb::wire
