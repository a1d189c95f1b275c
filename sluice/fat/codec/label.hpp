#pragma once

#include <array>
#include <expected>
#include <string>
#include <string_view>

// The label of a volume: eleven bytes, stored in the boot sector and as an entry of the root
// directory.

namespace sluice::fat {

using label_bytes = std::array<char, 11>;

/// The label in the boot sector of a volume without a label.
inline constexpr label_bytes no_label = {'N', 'O', ' ', 'N', 'A', 'M', 'E', ' ', ' ', ' ', ' '};

/// Encodes a label in the on-disk form: in upper case, padded with spaces. An empty label gives
/// no_label.
/// Errors, as a sentence to display: more than 11 characters, a character that labels cannot have,
/// a leading space. Only ASCII is allowed, because other characters differ between code pages.
/// Allocates: the sentence.
[[nodiscard]] std::expected<label_bytes, std::string> encode_label(std::string_view text);

/// Returns the label without its padding; empty for no_label. Bytes outside ASCII become '?'.
/// Allocates: the string.
[[nodiscard]] std::string label_text(const label_bytes& label);

}  // namespace sluice::fat
