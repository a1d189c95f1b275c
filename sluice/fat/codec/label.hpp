#pragma once

#include <array>
#include <expected>
#include <string>
#include <string_view>

// The label of a volume: eleven bytes, kept twice, in the boot sector and as an entry of the root directory.

namespace sluice::fat {

using label_bytes = std::array<char, 11>;

/// The label in the boot sector of a volume without a label.
inline constexpr label_bytes no_label = {'N', 'O', ' ', 'N', 'A', 'M', 'E', ' ', ' ', ' ', ' '};

/// A label as it is written: in upper case, padded with spaces. An empty one gives no_label.
/// Errors, as a sentence for people: more than 11 characters, a character labels cannot have, a space in
/// front. Only ASCII: everything else reads differently in every code page. Allocates: the sentence.
[[nodiscard]] std::expected<label_bytes, std::string> encode_label(std::string_view text);

/// The label without its padding; empty for no_label. Bytes beyond ASCII become '?'. Allocates: the string.
[[nodiscard]] std::string label_text(const label_bytes& label);

}  // namespace sluice::fat
